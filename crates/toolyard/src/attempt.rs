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
    batch::{BatchState, Ending, Timing, vanished},
};
use classify::{Facts, classify};
use futures::FutureExt;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use supervise::{Bounds, Told, Verdict, supervise};
use tokio::sync::oneshot;
use toolyard_core::{ContextParts, Emit, EventKind, Placement, ToolClass, ToolContext};
use tracing::Instrument;

/// Runs a call that has its permits, to its one result.
pub(crate) async fn run(batch: Arc<BatchState>, index: u32, permit: Permit, timing: Timing) {
    let open = Open { batch, index, permit: Some(permit), timing };
    open.announce();
    let span = open.span();
    let (verdict, still_running) = open.execute().instrument(span).await;
    open.close(verdict, still_running).await;
}

/// An attempt that has no result yet. Should its task vanish, dropping it writes one (SC-3).
struct Open {
    batch: Arc<BatchState>,
    index: u32,
    /// `None` once the result is written.
    permit: Option<Permit>,
    timing: Timing,
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
                args: work.args.clone(),
                cx: self.context(&bounds),
                grant: work.grant,
                placement: work.entry.spec().placement,
            },
            Err(panic) => return (Verdict::Panicked(panic), None),
        };
        match engine.backend.execute(&execution) {
            Ok(Running { result, stopped }) => {
                let result = AssertUnwindSafe(result).catch_unwind();
                let told = Told { tool: execution.tool.as_ref(), cancel: &self.batch.cancel, engine };
                let verdict = supervise(result, &told, &bounds).await;
                if verdict.gave_up() {
                    execution.cx.cancel_token().cancel(); // a blocking handler may look at it
                }
                (verdict, stopped.after())
            }
            Err(error) => (Verdict::Sandbox(error), None),
        }
    }

    fn bounds(&self) -> Bounds {
        let work = self.batch.work(self.index);
        let timeout = self.batch.call(self.index).timeout.unwrap_or_else(|| work.entry.attempt_timeout());
        let timeout = work.grant.limits.wall_time.map_or(timeout, |wall| wall.min(timeout));
        Bounds { timeout, deadline: self.timing.granted_at.checked_add(timeout) }
    }

    fn context(&self, bounds: &Bounds) -> ToolContext {
        let (batch, call) = (&self.batch, self.batch.call(self.index));
        let is_blocking = self.batch.work(self.index).entry.spec().placement == Placement::Blocking;
        // One token serves a batch. A handler that cannot be dropped has its own, to be told of its timeout.
        let cancel = if is_blocking { batch.cancel.child_token() } else { batch.cancel.clone() };
        let session = &batch.session;
        let mut parts = ContextParts::new(
            session.id.clone(),
            session.agent.clone(),
            call.id.clone(),
            call.name.clone(),
            session.resources.clone(),
            cancel,
        );
        (parts.turn, parts.batch) = (batch.turn, batch.number);
        parts.deadline = bounds.deadline;
        parts.idempotency_key = call.idempotency_key.clone();
        parts.emit = session.engine.bus.is_listening().then(|| self.deltas());
        ToolContext::new(parts)
    }

    fn deltas(&self) -> Arc<dyn Emit> {
        Arc::new(Deltas { batch: self.batch.clone(), index: self.index })
    }

    /// Gives the permits back, then writes the result.
    async fn close(mut self, verdict: Verdict, still_running: Option<oneshot::Receiver<bool>>) {
        let engine = self.batch.session.engine.clone();
        let ended_at = engine.clock.now();
        let work = self.batch.work(self.index);
        let facts = Facts {
            entry: &work.entry,
            limits: &work.grant.limits,
            output_bytes_max: engine.gate.limits.output_bytes_max,
            cancelled: self.batch.cancel.is_cancelled(),
        };
        let ending = Ending {
            status: classify(verdict, &facts),
            queued: self.timing.granted_at - self.timing.ready_at,
            ran: ended_at.saturating_duration_since(self.timing.granted_at),
            attempts: 1,
            sandbox: work.grant.sandbox,
            cancel_requested: facts.cancelled,
        };
        let class = work.class;
        let mut permit = self.permit.take().expect("an attempt has its permit until it closes");
        let (batch, index) = (self.batch.clone(), self.index);
        match still_running {
            None => {
                drop(permit);
                batch.finish(index, ending).await;
                batch.quiescent(index);
            }
            Some(stopped) => {
                permit.keep_only(|unit| a_zombie_keeps(class, unit));
                engine.runtime.spawn(watch_zombie(batch.clone(), index, permit, stopped));
                batch.finish(index, ending).await;
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            drop(permit);
            self.batch.end_started(self.index, Ending::vanished(vanished(), self.timing));
            self.batch.quiescent(self.index);
        }
    }
}

/// What a handler that was given up and still runs goes on holding (SC-6): a mutating one its tool and class
/// units, since it may still change things; a reading one nothing but its tool's.
fn a_zombie_keeps(class: ToolClass, unit: UnitKind) -> bool {
    match unit {
        UnitKind::Session => false,
        UnitKind::Tool => true,
        UnitKind::Class(_) => class != ToolClass::Read,
    }
}

/// Waits for a handler that could not be dropped; its run is quiescent when it stops.
async fn watch_zombie(batch: Arc<BatchState>, index: u32, permit: Permit, stopped: oneshot::Receiver<bool>) {
    tracing::warn!(tool = &*batch.call(index).name, "a handler was given up and still runs");
    // A sender that is dropped has lost its thread: there is nothing left to wait for.
    let ok = stopped.await.unwrap_or(false);
    drop(permit);
    batch.emit(index, Some(1), || EventKind::LateResult { ok });
    batch.quiescent(index);
}

/// Streamed output of one attempt.
struct Deltas {
    batch: Arc<BatchState>,
    index: u32,
}

impl Emit for Deltas {
    fn output_delta(&self, cx: &ToolContext, text: &str) {
        self.batch.emit_delta(self.index, cx.attempt(), text);
    }
}
