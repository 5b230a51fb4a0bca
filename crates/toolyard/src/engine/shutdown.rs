//! Stopping an engine, step by step (SC-8).

use crate::{
    call::{EngineCore, Stop, unfinished},
    config::{Drain, RECORD_FLUSH_WAIT, RECORD_WAIT_AT_LAST},
    pool::Pools,
    record::RecordError,
};
use std::{sync::atomic::Ordering, time::Duration};
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
    engine.begin_drain();
    step(DrainStep::Refuse);
    pools.drain().await;
    step(DrainStep::ClearQueue);
    engine.stop(Stop::ShuttingDown);
    step(DrainStep::Finish);
    let last_longer_than = async |limit| {
        let all_ended = engine.batch_ends.all_ended(|| engine.batches());
        engine.tasks.timeout(limit, all_ended).await.is_none()
    };
    if last_longer_than(drain.finish).await {
        step(DrainStep::Cancel);
        cancel_running(engine);
        if last_longer_than(drain.grace).await {
            step(DrainStep::Abandon);
            engine.gives_up();
            let records = if engine.recorder.is_some() { RECORD_WAIT_AT_LAST } else { Duration::ZERO };
            if last_longer_than(WRAP_UP_TIME + records).await {
                let batches = unfinished(engine.batches()).count();
                tracing::error!(batches, "calls did not end after their handlers were abandoned");
            }
        }
    }
    let flushed = engine.recorder.as_ref().and_then(|recorder| recorder.give(|recorder| recorder.flush()));
    if let Some(flushed) = flushed {
        let what = "what was recorded could not be made durable before the engine has stopped";
        let flushed = engine.tasks.timeout(RECORD_FLUSH_WAIT, flushed).await;
        if let Err(error) = flushed.unwrap_or_else(|| Err(RecordError::late())) {
            engine.log_unrecorded(what, &error);
        }
    }
    let written = engine.bus.written(&engine.tasks).await;
    pools.stop().await;
    step(DrainStep::Stopped);
    engine.bus.close(&engine.tasks, !written).await;
    engine.end_waits();
    DrainReport { abandoned: engine.abandoned.load(Ordering::Relaxed) - abandoned_before }
}

fn cancel_running(engine: &EngineCore) {
    engine.batches().iter().for_each(|batch| batch.cancel());
}
