//! Stopping an engine, step by step (SC-8).

use super::EngineCore;
use crate::{batch::Stop, config::Drain, pool::Pools};
use tokio::time::timeout;
use toolyard_core::{AgentPath, Event, EventKind, SessionId, event::DrainStep};

/// What a shutdown left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Whether every handler stopped by itself or when told to. If not, some were given up.
    pub clean: bool,
}

pub(super) async fn shutdown(engine: &EngineCore, pools: &Pools, drain: Drain) -> DrainReport {
    let step = |step| announce(engine, step);
    step(DrainStep::Refuse);
    pools.drain().await;
    step(DrainStep::ClearQueue);
    engine.stop(Stop::ShuttingDown);
    step(DrainStep::Finish);
    engine.tasks.close();
    let mut clean = timeout(drain.finish, engine.tasks.wait()).await.is_ok();
    if !clean {
        step(DrainStep::Cancel);
        cancel_running(engine);
        clean = timeout(drain.grace, engine.tasks.wait()).await.is_ok();
    }
    if !clean {
        step(DrainStep::Abandon);
    }
    engine.bus.flush();
    pools.stop().await;
    step(DrainStep::Stopped);
    DrainReport { clean }
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
