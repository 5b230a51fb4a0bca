//! Waiting until no batch has a call without a result, and all have told of it.
//!
//! Nobody counts the batches: who waits looks for them where a cancel finds them, and is told when one lands.

use crate::batch::BatchState;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// Tells whoever waits of batches that land.
#[derive(Debug, Default)]
pub(crate) struct InAir {
    /// How many wait. Nearly always none, and then a landing tells nobody.
    waiting: AtomicUsize,
    landed: Notify,
}

impl InAir {
    /// A batch has the last of its results and has told of it.
    pub(crate) fn landed(&self) {
        // Sequentially consistent with `none`, as what a batch counts its results by is, and that it has told of them: the
        // one that lands sees who waits, or who waits sees that it has landed.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.landed.notify_waiters();
        }
    }

    /// Waits until none of these is in the air, those that come meanwhile included.
    pub(super) async fn none(&self, batches: impl Fn() -> Vec<Arc<BatchState>>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        loop {
            // Not kept while they are waited for. Each landing looks at the last of them alone, however many there are.
            let mut left: Vec<_> = not_landed(batches()).map(|batch| Arc::downgrade(&batch)).collect();
            if left.is_empty() {
                return;
            }
            while let Some(batch) = left.last() {
                // Made before the batch is looked at: a landing in between is not missed.
                let landed = self.landed.notified();
                if batch.upgrade().is_some_and(|batch| batch.is_in_air()) {
                    landed.await;
                } else {
                    left.pop();
                }
            }
        }
    }
}

/// Those that have not landed.
pub(super) fn not_landed(batches: Vec<Arc<BatchState>>) -> impl Iterator<Item = Arc<BatchState>> {
    batches.into_iter().filter(|batch| batch.is_in_air())
}

/// Somebody who waits, or has gone.
struct Waiting<'a>(&'a InAir);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, engine::EngineCore, tool_fn};
    use futures::FutureExt;
    use std::sync::{Arc, Mutex, OnceLock, Weak};
    use toolyard_core::{Call, Event, EventKind, ToolContext, ToolSpec};

    /// SC-8: a drain that looks while the end of a turn is told waits for that: it would be behind the last event.
    #[tokio::test]
    async fn a_batch_is_in_the_air_until_its_end_has_been_told() {
        let (core, drained) =
            (Arc::new(OnceLock::<Weak<EngineCore>>::new()), Arc::new(Mutex::new(Vec::new())));
        let (of, seen) = (core.clone(), drained.clone());
        let look = move |event: &Event| {
            if matches!(event.kind, EventKind::TurnEnded { .. }) {
                let core = of.get().and_then(Weak::upgrade).unwrap();
                seen.lock().unwrap().push(core.in_air.none(|| core.batches()).now_or_never().is_some());
            }
        };
        let nothing = tool_fn(ToolSpec::read("nothing"), |(): (), _: ToolContext| async { Ok("") });
        let engine = Engine::builder().tool(nothing).events(look).build().await.unwrap();
        core.set(Arc::downgrade(&engine.core)).unwrap();
        let session = engine.session("s");
        session.call(Call::new("one run", "nothing", "{}")).await;
        session.dispatch(["nothing", "unknown"].map(|tool| Call::new(tool, tool, "{}")).to_vec()).await;
        assert_eq!(*drained.lock().unwrap(), [false, false]);
        engine.core.in_air.none(|| engine.core.batches()).now_or_never().unwrap();
    }
}
