//! One execution of a call, from its permits to its result.
//!
//! ```text
//!   permits ─► tool.called, dispatch.attempt ─► Backend::execute ─► supervise ─► classify ─► permits back ─► result
//!                                                                  │ result, panic
//!                                                                  │ timeout            handler dropped at once
//!                                                                  └ cancel ─► grace ─► abandon
//! ```
//!
//! An attempt has a task of its own while it runs (`runner.rs`). What it holds is moved into that task, so nothing
//! runs without a permit and nothing that has ended keeps one (SC-2). A panic ends this call alone. A blocking
//! handler cannot be dropped: its call ends on time, and what the handler holds stays with it until it stops (SC-6).

mod backend;
mod classify;
mod execute;
mod finish;
mod host;
mod layered;
mod next;
mod reach;
mod recorded;
mod retry;
mod run;
mod runner;
mod supervise;
mod watch;
mod zombie;

pub use backend::{Backend, Execution, Failure, Running, SandboxError, Stopped, Work};
pub use host::HostBackend;
pub(crate) use next::Next;
pub use reach::{OpenedPath, Reach, ReachedHosts, ReachedPath};
pub(crate) use runner::{Job, Runners};

use crate::{
    call::{
        batch::BatchState,
        ending::Ending,
        engine::EngineCore,
        in_flight::{CallRef, InFlight},
        progress::{Bid, Progress},
        slot::Cleared,
    },
    tool::Slots,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard_admission::Held;
use toolyard_core::{Confinement, Outcome};

/// Everything an attempt needs to start.
pub(crate) struct AttemptStart {
    pub(crate) held: Held,
    pub(crate) slots: Slots,
    pub(crate) bid: Bid,
    pub(crate) granted_at: Instant,
}

/// A call that holds its permits and has no result yet. If its task is dropped, `Drop` releases the permits and
/// writes a result (SC-3). Kept small because it is moved into its runner.
pub(crate) struct Attempt {
    call: CallRef,
    held: Held,
    ready_at: Instant,
    granted_at: Instant,
    /// The failed attempts before this one, if any.
    progress: Option<Box<Progress>>,
    stage: Stage,
}

/// What an attempt still has to give back, and to tell.
enum Stage {
    /// The record of its start is waited for, with its permits and its breaker slots. Its handler has not been started.
    Unstarted(Slots),
    /// Its handler runs, with its permits and its breaker slots.
    Running(Slots),
    /// The breakers have counted its end. It still has its permits.
    Counted,
    /// Its permits are released, but for what a handler that was given up still holds.
    Released { zombie: Option<Box<Held>> },
    /// The same; meanwhile the record of its result is waited for.
    Recording { zombie: Option<Box<Held>>, ending: Box<Ending>, no_side_effect: bool },
    /// The result has been reported to its key.
    Reported { zombie: Option<Box<Held>> },
    /// The same; meanwhile the end hook looks at the result.
    InHook { zombie: Option<Box<Held>>, outcome: Box<Outcome> },
    /// Its call has the result, or waits for its next attempt.
    Done,
}

impl Attempt {
    pub(crate) fn new(call: CallRef, start: AttemptStart) -> Self {
        let AttemptStart { held, slots, bid: Bid { ready_at, progress }, granted_at } = start;
        Self { call, held, ready_at, granted_at, progress, stage: Stage::Running(slots) }
    }

    /// Its number, from 1.
    fn number(&self) -> u32 {
        self.progress.as_ref().map_or(1, |progress| progress.attempts + 1)
    }

    #[inline(always)]
    fn at(&self) -> InFlight<'_> {
        self.call.at()
    }

    fn batch(&self) -> &Arc<BatchState> {
        &self.call.batch
    }

    fn engine(&self) -> &EngineCore {
        self.at().engine()
    }

    fn work(&self) -> &Cleared {
        self.at().work()
    }

    fn confinement(&self) -> &Confinement {
        self.at().confinement()
    }

    /// When the call was ready, and when it got its first permits.
    fn first_times(&self) -> (Instant, Instant) {
        let first = (self.ready_at, self.granted_at);
        self.progress.as_ref().map_or(first, |progress| (progress.ready_at, progress.granted_at))
    }

    /// How long the call waited for its first permits.
    fn queued(&self) -> Duration {
        let (ready_at, granted_at) = self.first_times();
        // Usually at once, which needs no arithmetic.
        if granted_at == ready_at { Duration::ZERO } else { granted_at.saturating_duration_since(ready_at) }
    }
}
