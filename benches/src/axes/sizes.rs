//! Batches from one call to the largest allowed.

use super::ways;
use crate::axis::Axis;

pub(crate) const AXIS: Axis = Axis {
    name: "sizes",
    about: "the ways of the engine, in batches of one call to ten thousand",
    sizes: &[1, 8, 40, 1000, 10_000],
    rounds: 21,
    ..ways::AXIS
};
