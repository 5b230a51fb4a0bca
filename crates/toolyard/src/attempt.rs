//! One execution of a call, from its permits to its result.
//!
//! ```text
//!   permits ─► tool.called, dispatch.attempt ─► Backend::execute ─► supervise ─► classify ─► permits back ─► result
//!                                                                  │ result, panic
//!                                                                  │ timeout            handler dropped at once
//!                                                                  └ cancel ─► grace ─► abandon
//! ```
//!
//! An attempt has a task of its own while it runs (`runner.rs`); the permit is moved into it, so nothing runs without one and nothing that
//! ended keeps one (SC-2). A panic ends this call alone. A blocking handler cannot be dropped: its call ends
//! on time, and what it holds goes on with it until it stops (SC-6).

mod backend;
mod blocking;
mod classify;
mod runner;
mod supervise;

pub use backend::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub use blocking::{Blocking, BlockingThreads};
pub(crate) use runner::Runners;

use crate::{
    admission::{Permit, UnitKind},
    batch::{BatchState, Ending, Timing, ZOMBIE_WAIT, vanished},
};
use classify::{Facts, classify};
use futures::FutureExt;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use supervise::{Bounds, Told, Verdict, supervise};
use tokio::sync::oneshot;
use toolyard_core::{Dedupe, EventKind, Placement, ToolClass, ToolContext};
use tracing::Instrument;

/// A call that has its permits and no result yet. Should it vanish, dropping it writes one (SC-3).
pub(crate) struct Attempt {
    /// First, so that it is given back before the batch, and with it the session's units, can be gone.
    permit: Option<Permit>,
    batch: Arc<BatchState>,
    index: u32,
    timing: Timing,
    /// The result, while the hook at its end is told. Boxed: most calls have no such hook, and an attempt is moved
    /// to its runner.
    told: Option<Box<Ending>>,
    done: bool,
}

impl Attempt {
    pub(crate) fn new(batch: Arc<BatchState>, index: u32, permit: Permit, timing: Timing) -> Self {
        Self { permit: Some(permit), batch, index, timing, told: None, done: false }
    }

    /// Runs the call to its one result.
    pub(crate) async fn run(mut self) {
        self.announce();
        let executed = AssertUnwindSafe(self.execute().instrument(self.span())).catch_unwind().await;
        // Whatever of the tool panics, its synchronous part or its drop: that is this call's panic.
        let (verdict, still_running) = executed.unwrap_or_else(|panic| (Verdict::Panicked(panic), None));
        self.release(still_running.is_some());
        let mut ending = self.ending(verdict);
        if self.batch.session.engine.gate.hooks.is_some() {
            // Boxed: a call without hooks has no room for them in its task.
            ending = Box::pin(self.tell_hook(ending)).await;
        }
        self.finish(ending, still_running);
    }

    fn announce(&self) {
        let work = self.batch.work(self.index);
        self.batch.emit(self.index, None, || EventKind::Called {
            tool_name: self.batch.call(self.index).name.clone(),
            side_effects: work.entry.spec().side_effects,
            class: work.class,
            queue_ms: u64::try_from((self.timing.granted_at - self.timing.ready_at).as_millis())
                .unwrap_or(u64::MAX),
        });
        self.batch.emit(self.index, Some(1), || EventKind::Attempt);
    }

    fn span(&self) -> tracing::Span {
        let call = self.batch.call(self.index);
        tracing::info_span!(
            "execute_tool",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = &*call.name,
            gen_ai.tool.call.id = call.id.as_str(),
            error.r#type = tracing::field::Empty,
        )
    }

    /// Executes the handler. The receiver comes to its end when a handler that could not be dropped does.
    async fn execute(&self) -> (Verdict, Option<oneshot::Receiver<bool>>) {
        let work = self.batch.work(self.index);
        let engine = &self.batch.session.engine;
        let bounds = self.bounds();
        let execution = match catch_unwind(AssertUnwindSafe(|| work.entry.create())) {
            Ok(tool) => Execution {
                tool,
                args: &work.args,
                cx: self.context(&bounds),
                grant: work.grant(),
                placement: work.entry.spec().placement,
            },
            Err(panic) => return (Verdict::Panicked(panic), None),
        };
        match engine.backend.execute(&execution) {
            Ok(Running { result, stopped }) => {
                let result = AssertUnwindSafe(result).catch_unwind();
                let told = Told { tool: execution.tool.as_ref(), scope: self.batch.as_ref(), engine };
                let verdict = supervise(result, &told, &bounds).await;
                if verdict.gave_up() {
                    execution.cx.cancel_own(); // a blocking handler may look at it
                }
                (verdict, stopped.after())
            }
            Err(error) => (Verdict::Sandbox(error), None),
        }
    }

    fn bounds(&self) -> Bounds {
        let work = self.batch.work(self.index);
        let timeout = self.batch.call(self.index).timeout.unwrap_or_else(|| work.entry.attempt_timeout());
        let timeout = work.grant().limits.wall_time.map_or(timeout, |wall| wall.min(timeout));
        Bounds { timeout, deadline: self.timing.granted_at.checked_add(timeout) }
    }

    fn context(&self, bounds: &Bounds) -> ToolContext {
        let cx = ToolContext::in_scope(self.batch.clone(), self.index, 1, bounds.deadline);
        match self.batch.work(self.index).entry.spec().placement {
            // It cannot be dropped, so it has a token of its own to be told of its timeout.
            Placement::Blocking => cx.with_own_token(),
            Placement::Task | Placement::Inline => cx,
        }
    }

    /// Gives the permits back, before the result is written; all but what a handler that still runs holds.
    fn release(&mut self, still_running: bool) {
        let class = self.batch.work(self.index).class;
        match &mut self.permit {
            Some(permit) if still_running => permit.become_zombie(|unit| a_zombie_keeps(class, unit)),
            permit => drop(permit.take()),
        }
    }

    /// The hook at the call's end (V1). Should the task vanish meanwhile, the result is there.
    async fn tell_hook(&mut self, ending: Ending) -> Ending {
        let ending = self.told.insert(Box::new(ending));
        let outcome = self.batch.outcome(self.index, Ending::clone(ending));
        self.batch.session.engine.gate.ended(&outcome, &self.batch.caller()).await;
        *self.told.take().expect("it was put there above")
    }

    /// Writes the result. The call is quiescent with it, or when its handler has stopped (V2).
    fn finish(mut self, ending: Ending, still_running: Option<oneshot::Receiver<bool>>) {
        self.done = true;
        match (still_running, self.permit.take()) {
            (Some(stopped), Some(permit)) => {
                self.batch.end_started(self.index, ending, false);
                let zombie = Zombie { permit, batch: self.batch.clone(), index: self.index };
                self.batch.session.engine.tasks.spawn(zombie.watch(stopped));
            }
            _ => self.batch.end_started(self.index, ending, true),
        }
    }

    fn ending(&self, verdict: Verdict) -> Ending {
        let engine = &self.batch.session.engine;
        let work = self.batch.work(self.index);
        let stop = self.batch.cancelled();
        let facts = Facts {
            entry: &work.entry,
            limits: &work.grant().limits,
            output_bytes_max: engine.gate.limits.output_bytes_max,
            stop,
        };
        let attempts = u32::from(!matches!(verdict, Verdict::Sandbox(_)));
        Ending {
            status: classify(verdict, &facts),
            queued: self.timing.granted_at - self.timing.ready_at,
            ran: engine.clock.now().saturating_duration_since(self.timing.granted_at),
            attempts,
            sandbox: work.grant().sandbox,
            cancel_requested: stop.is_some(),
            dedupe: Dedupe::Fresh,
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.done {
            drop(self.permit.take());
            let told = self.told.take().map(|told| *told);
            let ending = told.unwrap_or_else(|| Ending::vanished(vanished(), self.timing));
            self.batch.end_started(self.index, ending, true);
        }
    }
}

/// What a handler that was given up and still runs goes on holding (SC-6): a mutating one its tool and class
/// units, since it may still change things; a reading one nothing but its tool's.
fn a_zombie_keeps(class: ToolClass, unit: UnitKind) -> bool {
    match unit {
        UnitKind::Session | UnitKind::Tree => false,
        UnitKind::Tool => true,
        UnitKind::Class(_) => class != ToolClass::Read,
    }
}

/// A handler that was given up and could not be dropped.
struct Zombie {
    /// First, as in [`Attempt`].
    #[expect(dead_code, reason = "held until the handler has stopped")]
    permit: Permit,
    batch: Arc<BatchState>,
    index: u32,
}

impl Zombie {
    /// Waits until the handler has stopped; its run is quiescent then.
    async fn watch(self, mut stopped: oneshot::Receiver<bool>) {
        let (batch, index) = (self.batch.clone(), self.index);
        tracing::warn!(tool = &*batch.call(index).name, "a handler was given up and still runs");
        let admission = &batch.session.engine.admission;
        let mark = admission.mark();
        let ended = tokio::select! {
            biased;
            ended = &mut stopped => ended,
            () = tokio::time::sleep(ZOMBIE_WAIT) => {
                // Those who came later have a timer of their own.
                admission.expire_behind_zombies(mark);
                stopped.await
            }
        };
        // A sender that is dropped has lost its thread: there is nothing left to wait for.
        let ok = ended.unwrap_or(false);
        batch.emit(index, Some(1), || EventKind::LateResult { ok });
        drop(self);
        batch.quiescent(index);
    }
}
