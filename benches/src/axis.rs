//! What is varied while the rest stays: an axis, and those who are measured on it.

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

/// One question, and those who answer it.
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
    /// Calls per sample: small batches are run so often that there are about so many.
    pub calls_per_sample: usize,
    /// What is counted.
    pub unit: Unit,
    /// Builds those who are measured; the first is what the others are compared with.
    pub build: fn() -> Building,
}

/// The axis that is measured when nobody names one.
pub const WAYS: Axis = axes::ways::AXIS;

/// Every axis.
pub const AXES: &[Axis] = &[
    WAYS,
    axes::sizes::AXIS,
    axes::stages::AXIS,
    axes::waits::YIELDS,
    axes::waits::SLEEPS,
    axes::classes::AXIS,
    axes::depths::AXIS,
    axes::agents::AXIS,
    axes::contention::AXIS,
    axes::formats::AXIS,
    axes::decoders::AXIS,
    // Last: from then on somebody might listen to every span of the process.
    axes::spans::AXIS,
];

/// The axis of this name.
///
/// # Errors
/// A sentence that names those there are.
pub(crate) fn axis(name: &str) -> Result<Axis, String> {
    let found = AXES.iter().find(|axis| axis.name == name).copied();
    let known = || AXES.iter().map(|axis| axis.name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("there is no axis '{name}': choose {}", known()))
}
