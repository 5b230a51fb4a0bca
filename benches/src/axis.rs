//! An axis: one thing that is varied while the rest stays, and the contenders measured on it.

use crate::{axes, contender::Contenders};
use std::{future::Future, pin::Pin};

/// Contenders that are being built.
pub type Building = Pin<Box<dyn Future<Output = Result<Contenders, String>> + Send>>;

/// What the figures of an axis count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds a call.
    Call,
    /// Nanoseconds a byte.
    Byte,
}

/// One question, and the contenders that answer it.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its name, for `--axis`.
    pub name: &'static str,
    /// The question.
    pub about: &'static str,
    /// Calls in a batch.
    pub sizes: &'static [usize],
    /// How often each contender is measured at each size.
    pub rounds: usize,
    /// Calls per sample, roughly: small batches are repeated until they add up to it.
    pub calls_per_sample: usize,
    /// The unit of the figures.
    pub unit: Unit,
    /// Builds the contenders. The others are compared with the first.
    pub build: fn() -> Building,
}

/// The axis that is measured if none is named.
pub const WAYS: Axis = axes::ways::AXIS;

/// Every axis.
pub const AXES: &[Axis] = &[
    WAYS,
    axes::sizes::AXIS,
    axes::stages::AXIS,
    axes::listeners::AXIS,
    axes::waits::YIELDS,
    axes::waits::SLEEPS,
    axes::classes::AXIS,
    axes::depths::AXIS,
    axes::agents::AXIS,
    axes::contention::AXIS,
    axes::formats::AXIS,
    axes::decoders::AXIS,
    // Last: from here on a listener may see every span of the process.
    axes::spans::AXIS,
];

/// Returns the axis of this name.
///
/// # Errors
/// A sentence that names the existing axes.
pub(crate) fn axis(name: &str) -> Result<Axis, String> {
    let found = AXES.iter().find(|axis| axis.name == name).copied();
    let known = || AXES.iter().map(|axis| axis.name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("no axis '{name}': choose {}", known()))
}
