//! Stopping an engine, step by step (SC-8).

use super::EngineCore;
use crate::{batch::Stop, config::Drain, pool::Pools};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use toolyard_core::{AgentPath, Event, EventKind, SessionId, event::DrainStep};

/// What a shutdown left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// How many handlers were told to stop and were given up.
    pub abandoned: usize,
}

/// What a call still needs after its handler was given up: the hook at its end, and to tell of it.
const LAST_WORDS: Duration = Duration::from_secs(6);

pub(super) async fn shutdown(engine: &EngineCore, pools: &Pools, drain: Drain) -> DrainReport {
    let step = |step| announce(engine, step);
    let abandoned_before = engine.abandoned.load(Ordering::Relaxed);
    step(DrainStep::Refuse);
    pools.drain().await;
    step(DrainStep::ClearQueue);
    engine.stop(Stop::ShuttingDown);
    step(DrainStep::Finish);
    engine.tasks.close();
    if timeout(drain.finish, engine.tasks.wait()).await.is_err() {
        step(DrainStep::Cancel);
        engine.shorten_grace(drain.grace);
        cancel_running(engine);
        // Every attempt gives its handler up by itself when the grace is over.
        if timeout(drain.grace + LAST_WORDS, engine.tasks.wait()).await.is_err() {
            tracing::error!(
                tasks = engine.tasks.len(),
                "calls did not end when their handlers were given up"
            );
        }
        step(DrainStep::Abandon);
    }
    pools.stop().await;
    step(DrainStep::Stopped);
    engine.bus.flush();
    DrainReport { abandoned: engine.abandoned.load(Ordering::Relaxed) - abandoned_before }
}

fn cancel_running(engine: &EngineCore) {
    for session in engine.open_sessions() {
        session.batches().iter().for_each(|batch| batch.cancel.cancel());
    }
}

/// The engine's own events are those of a session of its name.
fn announce(engine: &EngineCore, step: DrainStep) {
    if engine.bus.is_listening() {
        let now = engine.clock.now();
        let mut event =
            Event::new(SessionId::from("@engine"), AgentPath::root(), EventKind::EngineDrain { step });
        event.wall_ms = engine.clock.wall_ms(now);
        event.mono_us = engine.clock.mono_us(now);
        engine.sequence.publish(&engine.bus, event);
    }
}
