//! Batches from one call to the largest allowed.

use super::ways;
use crate::axis::Axis;

pub(crate) const AXIS: Axis = Axis {
    name: "sizes",
    about: "the usual configurations, in batches of 1 to 10 000 calls",
    sizes: &[1, 8, 40, 1000, 10_000],
    rounds: 21,
    ..ways::AXIS
};
