//! Those who are measured: the same work, done in different ways.

use std::{future::Future, pin::Pin, sync::Arc};

/// Work that is ready to be done: everything it needs was made before the clock runs.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One way of doing it.
pub trait Contender: Send + Sync {
    /// What figures call it.
    fn name(&self) -> &str;

    /// So many batches of so many calls, one after the other, to be run by whoever polls this.
    fn work(&self, calls: usize, batches: usize) -> Work;

    /// Forgets what the work has left behind, after each measurement: what others cost is not to depend on who took turns
    /// with them.
    fn forget(&self) {}

    /// By how many things the time of a batch is divided: its calls, unless it says otherwise.
    fn units(&self, calls: usize) -> usize {
        calls
    }
}

/// Those who are measured in turns; the first is what the others are compared with.
pub type Contenders = Vec<Arc<dyn Contender>>;
