//! Stopping an engine, step by step (SC-8).

use crate::{
    call::{EngineCore, Stop, unfinished},
    config::Drain,
    pool::Pools,
};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use toolyard_core::{EventKind, event::DrainStep};

/// The result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// How many handlers were asked to stop and then abandoned.
    pub abandoned: usize,
}

/// The time that calls still need after their handlers were abandoned, for the end hook (at most 5 s) and the last
/// events.
const WRAP_UP_TIME: Duration = Duration::from_secs(6);

pub(super) async fn shutdown(engine: &EngineCore, pools: &Pools, drain: Drain) -> DrainReport {
    let step = |step| engine.emit(EventKind::EngineDrain { step });
    let abandoned_before = engine.abandoned.load(Ordering::Relaxed);
    step(DrainStep::Refuse);
    pools.drain().await;
    step(DrainStep::ClearQueue);
    engine.stop(Stop::ShuttingDown);
    step(DrainStep::Finish);
    let all_ended = || engine.batch_ends.all_ended(|| engine.batches());
    if timeout(drain.finish, all_ended()).await.is_err() {
        step(DrainStep::Cancel);
        cancel_running(engine);
        if timeout(drain.grace, all_ended()).await.is_err() {
            step(DrainStep::Abandon);
            engine.abandon.cancel();
            if timeout(WRAP_UP_TIME, all_ended()).await.is_err() {
                let batches = unfinished(engine.batches()).count();
                tracing::error!(batches, "calls did not end after their handlers were abandoned");
            }
        }
    }
    let written = engine.bus.written().await;
    pools.stop().await;
    step(DrainStep::Stopped);
    engine.bus.close(!written).await;
    engine.end_waits();
    DrainReport { abandoned: engine.abandoned.load(Ordering::Relaxed) - abandoned_before }
}

fn cancel_running(engine: &EngineCore) {
    engine.batches().iter().for_each(|batch| batch.cancel());
}
