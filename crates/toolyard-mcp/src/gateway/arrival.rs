//! The order in which calls came in, kept while each has a task of its own.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// A call's place behind the one that came before it. Requests run as tasks, which start in any order; this is what
/// hands them to the engine in the order in which they came.
///
/// Clones are the same place; when the last one is dropped the next call goes, whatever has become of this one.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    before: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
    _next: Arc<oneshot::Sender<()>>,
}

impl Arrival {
    /// Waits until the call before has been handed over, or never will be.
    pub(super) async fn turn(&self) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            let _gone = before.await; // nothing is ever sent: it waits for the end of the one before
        }
    }
}

/// Gives calls their places.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<oneshot::Receiver<()>>,
}

impl Arrivals {
    /// The place behind all that were given.
    pub(super) fn next(&mut self) -> Arrival {
        let (next, after) = oneshot::channel();
        let before = Arc::new(Mutex::new(self.last.replace(after)));
        Arrival { before, _next: Arc::new(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use std::{pin::pin, task::Poll};

    /// CL-8: a call goes when the one before it has gone, be it handed over or dropped.
    #[tokio::test]
    async fn a_call_waits_for_the_one_before_and_no_longer() {
        let mut arrivals = Arrivals::default();
        let (first, second, third) = (arrivals.next(), arrivals.next(), arrivals.next());
        first.turn().await;
        let mut turn = pin!(third.turn());
        assert_eq!(poll!(turn.as_mut()), Poll::Pending);
        drop(second); // it never waited for its turn
        turn.await;
        drop(first);
    }
}
