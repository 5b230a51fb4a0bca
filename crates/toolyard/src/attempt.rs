//! One execution of a call, from its permits to its result.
//!
//! ```text
//!   permits ─► tool.called, dispatch.attempt ─► Backend::execute ─► supervise ─► classify ─► permits back ─► result
//!                                                                  │ result, panic
//!                                                                  │ timeout            handler dropped at once
//!                                                                  └ cancel ─► grace ─► abandon
//! ```
//!
//! An attempt is a task of its own; the permit is moved into it, so nothing runs without one and nothing that
//! ended keeps one (SC-2). A panic ends this call alone. A blocking handler cannot be dropped: its call ends
//! on time, and what it holds goes on with it until it stops (SC-6).

mod backend;
mod blocking;
mod classify;
mod supervise;

pub use backend::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub use blocking::{Blocking, BlockingThreads};

use crate::{
    admission::{Permit, UnitKind},
    batch::{BatchState, Ending, Timing, ZOMBIE_WAIT, vanished},
};
use classify::{Facts, classify};
use futures::FutureExt;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use supervise::{Bounds, Told, Verdict, supervise};
use tokio::sync::oneshot;
use toolyard_core::{Dedupe, EventKind, Placement, ToolClass, ToolContext};
use tracing::Instrument;

/// Runs a call that has its permits, to its one result.
///
/// Not an `async fn`: what writes a result if the task vanishes has to be there before its first poll.
pub(crate) fn run(
    batch: Arc<BatchState>,
    index: u32,
    permit: Permit,
    timing: Timing,
) -> impl Future<Output = ()> + Send {
    let mut open = Open { permit: Some(permit), batch, index, timing, ending: None, done: false };
    async move {
        open.announce();
        let executed = AssertUnwindSafe(open.execute().instrument(open.span())).catch_unwind().await;
        // Whatever of the tool panics, its synchronous part or its drop: that is this call's panic.
        let (verdict, still_running) = executed.unwrap_or_else(|panic| (Verdict::Panicked(panic), None));
        open.release(still_running.is_some());
        open.ending = Some(open.ending(verdict));
        if open.batch.session.engine.gate.hooks.is_some() {
            // Boxed: a call without hooks has no room for them in its task.
            Box::pin(open.tell_hook()).await;
        }
        open.finish(still_running);
    }
}

/// An attempt that has no result yet. Should its task vanish, dropping it writes one (SC-3).
struct Open {
    /// First, so that it is given back before the batch, and with it the session's units, can be gone.
    permit: Option<Permit>,
    batch: Arc<BatchState>,
    index: u32,
    timing: Timing,
    /// The result, while the hook at its end is told.
    ending: Option<Ending>,
    done: bool,
}

impl Open {
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

    /// The hook at the call's end (V1).
    async fn tell_hook(&self) {
        if let Some(ending) = &self.ending {
            let outcome = self.batch.outcome(self.index, ending.clone());
            self.batch.session.engine.gate.ended(&outcome, &self.batch.caller()).await;
        }
    }

    /// Writes the result. The call is quiescent with it, or when its handler has stopped (V2).
    fn finish(mut self, still_running: Option<oneshot::Receiver<bool>>) {
        match (still_running, self.permit.take()) {
            (Some(stopped), Some(permit)) => {
                self.write_result(false);
                let zombie = Zombie { permit, batch: self.batch.clone(), index: self.index };
                self.batch.session.engine.runtime.spawn(zombie.watch(stopped));
            }
            _ => self.write_result(true),
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

    /// Writes the result there is; without one, that the task vanished.
    fn write_result(&mut self, is_quiescent: bool) {
        self.done = true;
        let ending = self.ending.take().unwrap_or_else(|| Ending::vanished(vanished(), self.timing));
        self.batch.end_started(self.index, ending, is_quiescent);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.done {
            drop(self.permit.take());
            self.write_result(true);
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
    /// First, as in [`Open`].
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
