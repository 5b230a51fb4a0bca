//! The execution of an attempt's handler.

use crate::{
    call::{
        attempt::{
            Attempt,
            backend::{Execution, InHand, Running},
            supervise::{Verdict, supervise},
            watch::Bounds,
        },
        deadline::earlier,
        nested::within,
    },
    tasks::Contained,
};
use std::{pin::Pin, sync::OnceLock};
use tokio::sync::oneshot;
use toolyard_core::{CallTimeout, Placement, ToolContext};

/// Resolves when a handler that could not be dropped has stopped.
pub(super) type HandlerStopped = oneshot::Receiver<bool>;

/// The verdict on a handler, and where its end is reported if it still runs.
pub(super) type Executed = (Verdict, Option<HandlerStopped>);

impl Attempt {
    /// Executes the handler.
    pub(super) async fn execute(&self) -> Executed {
        let mut execution = Contained::new(self.execution());
        let (verdict, stopped) = {
            // Destructured at once: the scrutinee of a match lives as long as the match, and would take room in the
            // task.
            if let Some(layers) = self.work().entry.layers() {
                return Box::pin(self.execute_within(layers, execution)).await;
            }
            let (result, stopped) = match self.engine().backend.execute(&execution) {
                Ok(Running { result, stopped }) => (result, stopped),
                Err(error) => return (Verdict::Refused(error), None),
            };
            let mut handler = within(&self.call, InHand(result));
            let verdict = supervise(Pin::new(&mut handler), &execution).await;
            if verdict.stopped_waiting() {
                execution.cx.cancel_own(); // a blocking handler may check it
            }
            // A handler that was withdrawn does not start any more.
            let stopped = if matches!(verdict, Verdict::NotTaken(_)) { None } else { stopped.after() };
            (verdict.after_drop(handler.end()), stopped)
        };
        // The tool is dropped after its handler, each in a catch of its own.
        (verdict.after_drop(execution.end()), stopped)
    }

    /// A fresh tool and what it is to execute. A panic of its factory is caught with those of the handler: nothing of
    /// the embedder is held yet that it could meet.
    #[inline(always)]
    fn execution(&self) -> Execution<'_> {
        let work = self.work();
        let tool = work.entry.create();
        let (cx, args) = (self.context(&self.bounds()), self.at().args());
        let placement = work.entry.spec().placement;
        Execution {
            tool,
            args,
            cx,
            confinement: self.confinement(),
            placement,
            attempt: self,
            take_up: OnceLock::new(),
        }
    }

    #[inline(always)]
    pub(super) fn bounds(&self) -> Bounds {
        let work = self.work();
        let timeout =
            self.at().call().timeout.map_or_else(|| work.entry.attempt_timeout(), CallTimeout::duration);
        let timeout = self.confinement().limits.wall_time.map_or(timeout, |wall| wall.min(timeout));
        let (first_ready_at, first_granted_at) = self.first_times();
        let cut_at = earlier(self.granted_at.checked_add(timeout), self.at().last_cut_at(first_granted_at));
        Bounds { timeout, cut_at, deadline: self.at().deadline_of(first_ready_at) }
    }

    #[inline(always)]
    fn context(&self, bounds: &Bounds) -> ToolContext {
        let deadline = earlier(bounds.cut_at, bounds.deadline);
        let cx = ToolContext::in_scope(self.batch().clone(), self.call.index, self.number(), deadline);
        let spec = self.work().entry.spec();
        // A handler that is not dropped at its timeout has a token of its own, by which it is told.
        let outlives = spec.placement == Placement::Blocking || spec.settings.timeout_grace.is_some();
        if outlives { cx.with_own_token() } else { cx }
    }
}
