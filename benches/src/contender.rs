//! Contenders: the same work, done in different ways.

use std::{future::Future, pin::Pin, sync::Arc};

/// Work that is ready to run: all its inputs are made before the clock starts.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One way to do the work.
pub trait Contender: Send + Sync {
    /// The contender's name in the figures.
    fn name(&self) -> &str;

    /// Returns work of `batches` batches, one after the other, of `calls` calls each. The caller polls it.
    fn work(&self, calls: usize, batches: usize) -> Work;

    /// Called after each measurement: drops what the work left behind, so that it cannot affect other contenders.
    fn forget(&self) {}

    /// Number of units by which the time of a batch is divided: its calls, by default.
    fn units(&self, calls: usize) -> usize {
        calls
    }
}

/// Contenders that are measured in turns; the others are compared with the first.
pub type Contenders = Vec<Arc<dyn Contender>>;
