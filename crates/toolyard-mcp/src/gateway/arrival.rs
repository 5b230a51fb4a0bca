//! Keeps calls in their order of arrival although each has its own task.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A call's place behind the call that arrived before it. Requests run as tasks, which start in any order; waiting for
/// its [`turn`](Self::turn) hands each call to the engine in the order of arrival.
///
/// Clones are the same place. When the last one is dropped the next call proceeds, whatever happened to this one.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    before: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
    _next: Arc<oneshot::Sender<()>>,
}

impl Arrival {
    /// Waits until the previous call has been handed over or dropped.
    pub(super) async fn turn(&self) {
        let before = self.before.lock().take();
        if let Some(before) = before {
            let _gone = before.await; // nothing is ever sent: this waits until the previous place is dropped
        }
    }
}

/// Assigns places to calls.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<oneshot::Receiver<()>>,
}

impl Arrivals {
    /// The place behind all previous ones.
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

    /// CL-8: a call proceeds once the previous one has been handed over or dropped.
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
