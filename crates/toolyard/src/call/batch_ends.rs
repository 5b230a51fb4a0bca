//! Waiting until every batch has all its results and has announced its end.
//!
//! Batches are not counted. A waiter finds them the way a cancel does, and is notified when one finishes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// Notifies waiters of batches that finish.
#[derive(Debug, Default)]
pub(crate) struct BatchEnds {
    /// How many wait. Almost always zero, in which case finishing a batch notifies nobody.
    waiting: AtomicUsize,
    ended: Notify,
}

impl BatchEnds {
    /// A batch has its last result and has announced its end.
    pub(crate) fn notify(&self) {
        // Sequentially consistent with `all_ended`, like the batch's own count of open calls and its flag for the
        // announced end: either the finishing batch sees the waiter, or the waiter sees that the batch has finished.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_waiters();
        }
    }

    /// Waits until none of `batches` is in flight, including those that are added meanwhile.
    pub(crate) async fn all_ended<B: Ends>(&self, batches: impl Fn() -> Vec<Arc<B>>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        loop {
            // Weak, so that waiting does not keep them alive. Each notification re-checks only the last one, however
            // many are left.
            let mut left: Vec<_> = unfinished(batches()).map(|batch| Arc::downgrade(&batch)).collect();
            if left.is_empty() {
                return;
            }
            while let Some(batch) = left.last() {
                // Created before the batch is checked, so that a batch finishing in between is not missed.
                let ended = self.ended.notified();
                if batch.upgrade().is_some_and(|batch| batch.is_in_flight()) {
                    ended.await;
                } else {
                    left.pop();
                }
            }
        }
    }
}

/// A batch, as far as it is waited for.
pub(crate) trait Ends {
    /// Whether it has open calls, or has not announced its end.
    fn is_in_flight(&self) -> bool;
}

/// Those that are in flight.
pub(crate) fn unfinished<B: Ends>(batches: Vec<Arc<B>>) -> impl Iterator<Item = Arc<B>> {
    batches.into_iter().filter(|batch| batch.is_in_flight())
}

/// Counts one waiter in `BatchEnds::waiting` until it is dropped.
struct Waiting<'a>(&'a BatchEnds);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use crate::{call::engine::EngineCore, engine::Engine, tool::tool_fn};
    use futures::FutureExt;
    use std::sync::{Arc, Mutex, OnceLock, Weak};
    use toolyard_core::{Call, Event, EventKind, ToolContext, ToolSpec};

    /// SC-8: a drain that checks while the end of a turn is being announced waits for it; its event would come too
    /// late.
    #[tokio::test]
    async fn a_batch_is_in_flight_until_its_end_is_announced() {
        let (core, drained) =
            (Arc::new(OnceLock::<Weak<EngineCore>>::new()), Arc::new(Mutex::new(Vec::new())));
        let (of, seen) = (core.clone(), drained.clone());
        let look = move |event: &Event| {
            if matches!(event.kind, EventKind::TurnEnded { .. }) {
                let core = of.get().and_then(Weak::upgrade).unwrap();
                seen.lock()
                    .unwrap()
                    .push(core.batch_ends.all_ended(|| core.batches()).now_or_never().is_some());
            }
        };
        let nothing = tool_fn(ToolSpec::read("nothing"), |(): (), _: ToolContext| async { Ok("") });
        let engine = Engine::builder().tool(nothing).events(look).build().await.unwrap();
        core.set(Arc::downgrade(&engine.core)).unwrap();
        let session = engine.session("s");
        session.call(Call::new("one run", "nothing", "{}")).await;
        session.dispatch(["nothing", "unknown"].map(|tool| Call::new(tool, tool, "{}")).to_vec()).await;
        assert_eq!(*drained.lock().unwrap(), [false, false]);
        engine.core.batch_ends.all_ended(|| engine.core.batches()).now_or_never().unwrap();
    }
}
