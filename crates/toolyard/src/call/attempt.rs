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
mod next;
mod retry;
mod runner;
mod supervise;
mod watch;
mod zombie;

pub use backend::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub(crate) use next::Next;
pub(crate) use runner::Runners;

use super::end::End;
use super::in_flight::InFlight;
use super::refusals::vanished;
use super::run::Step;
use super::{
    batch::BatchState,
    deadline::earlier,
    ending::Ending,
    engine::EngineCore,
    nested::{CallRef, Report, within},
    progress::{Bid, Progress},
    span,
    stop::Stop,
};
use crate::{
    gate::{self, Cleared},
    record::OpenSpan,
    tasks::{Contained, caught},
    tool::{Decision, Slots},
};
use classify::{Facts, classify, redact};
use futures::future::BoxFuture;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};
use supervise::{Verdict, supervise};
use tokio::{sync::oneshot, time::Instant};
use toolyard_admission::Held;
use toolyard_core::{
    CallError, CallTimeout, Dedupe, Effect, ErrorKind, EventKind, Grant, Placement, ToolContext,
};
use watch::{Bounds, DetachReason};
use zombie::{Zombie, a_zombie_keeps};

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
    /// Its breaker slots, until its end is counted.
    slots: Option<Slots>,
    /// The failed attempts before this one, if any.
    progress: Option<Box<Progress>>,
    /// What a handler that was given up still holds.
    kept: Option<Box<Held>>,
    /// The result, while the end hook runs.
    ending_in_hook: Option<Box<Ending>>,
    /// Whether the result has been reported to its key.
    kept_result: bool,
    released: bool,
    done: bool,
}

/// Resolves when a handler that could not be dropped has stopped.
type HandlerStopped = oneshot::Receiver<bool>;

/// The verdict on a handler, and where its end is reported if it still runs.
type Executed = (Verdict, Option<HandlerStopped>);

/// The end of a call, and where its handler's end is reported if that still runs.
type CallEnd = (Ending, Option<HandlerStopped>);

impl Attempt {
    pub(crate) fn new(call: CallRef, start: AttemptStart) -> Self {
        let AttemptStart { held, slots, bid: Bid { ready_at, progress }, granted_at } = start;
        let slots = Some(slots);
        Self {
            call,
            held,
            ready_at,
            granted_at,
            slots,
            progress,
            kept: None,
            ending_in_hook: None,
            kept_result: false,
            released: false,
            done: false,
        }
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

    fn grant(&self) -> &Grant {
        self.at().grant()
    }

    /// Runs the call on a task of its own.
    pub(crate) fn spawn(self) {
        if let Some(attempt) = Next::offer(self) {
            let runners = attempt.engine().runners.clone();
            runners.run(attempt);
        }
    }

    /// Runs the call to its result, or leaves it waiting for its next attempt. Afterwards the caller only has to drop
    /// it, and to run the attempt unblocked by its permits, if any.
    #[expect(clippy::manual_async_fn, reason = "an async fn stores its arguments in its future twice")]
    pub(crate) fn run(&mut self) -> impl Future<Output = Option<Next>> + Send {
        async move {
            self.announce();
            let span = self.span();
            let executed = {
                // Pinned in place and polled by hand: it is large, and each wrapper would move it once more.
                let (mut executing, span) = (pin!(self.execute()), &span);
                poll_fn(move |cx| poll_caught(executing.as_mut(), span, cx)).await
            };
            let hook = match self.end(executed, span) {
                Ok(next) => return next,
                Err(hook) => hook,
            };
            hook.await;
            None
        }
    }

    /// Ends the call, or leaves it waiting for its next attempt. If a hook comes before its end, both are the error:
    /// boxed, so that a call without hooks needs no room for them in its task.
    #[inline(always)]
    fn end(&mut self, executed: Executed, span: OpenSpan) -> Result<Option<Next>, BoxFuture<'_, ()>> {
        let next = self.ends_soon().then(|| Next::of(self.engine()));
        let Some((ending, still_running)) = self.conclude(executed, span) else { return Ok(next) };
        if self.engine().hooks.is_some() {
            return Err(Box::pin(self.end_with_hook(ending, still_running)));
        }
        self.finish(ending, still_running);
        Ok(next)
    }

    /// Whether nothing slow happens between the end of the handler and that of the call: no redaction, and no code of
    /// sinks and hooks.
    #[inline]
    fn ends_soon(&self) -> bool {
        let engine = self.engine();
        engine.redactor.is_none() && !engine.bus.is_kept() && engine.hooks.is_none()
    }

    async fn end_with_hook(&mut self, mut ending: Ending, still_running: Option<HandlerStopped>) {
        // For a detached call the hook has already run.
        if !self.at().is_detached() {
            ending = self.run_end_hook(ending).await;
        }
        self.finish(ending, still_running);
    }

    /// Ends the attempt: counts it, releases its permits and decides on a retry. Returns the end of the call; `None`
    /// if it waits for its next attempt.
    #[inline(always)]
    fn conclude(&mut self, (verdict, still_running): Executed, span: OpenSpan) -> Option<CallEnd> {
        let ended_at = self.engine().clock.now();
        let no_side_effect = verdict.has_no_side_effect();
        // What is logged of it belongs to the call.
        let mut ending = {
            let _entered = span.enter();
            self.ending(verdict, ended_at)
        };
        let held = if ending.status.is_ok() { ending.footprint() } else { 0 };
        if held > 0 {
            self.hold(&mut ending, held);
        }
        // Counted before the permits are released: calls that are started by them see a breaker that has just opened.
        self.count(&ending, ended_at);
        self.release(still_running.is_some(), ended_at);
        if let Some(redactor) = &self.engine().results_redactor {
            let limits = &self.grant().limits;
            let bytes_max = self.engine().limits.output_bytes_max;
            self.batch().session.given_marks().add(redact(&mut ending, redactor, limits, bytes_max));
        }
        if let Err(error) = &mut ending.status {
            match self.after_failure(error, no_side_effect, still_running.is_some(), ended_at) {
                Decision::Stop(why) => error.retry_stopped = why,
                Decision::Retry { delay, paid } => {
                    self.try_again(ending, paid, delay, span.into_span());
                    return None;
                }
            }
        }
        if ending.status.is_err() || self.engine().results_redactor.is_some() {
            // An error that ends the call, or a mark that is longer than the secret in whose place it is.
            let more = ending.footprint().saturating_sub(held);
            self.hold(&mut ending, more);
        }
        self.close(span, &ending);
        self.release(still_running.is_some(), ended_at);
        self.succeeded(&ending);
        self.keep(&ending, no_side_effect);
        Some((ending, still_running))
    }

    /// Makes room for a result in its batch. If there is none, an error that says so takes its place. The result of a
    /// handler that goes on for others takes room in their batches alone.
    #[inline(always)]
    fn hold(&self, ending: &mut Ending, bytes: usize) {
        if self.at().is_detached() {
            return;
        }
        if let Err(error) = self.at().hold(bytes) {
            ending.status = Err(Box::new(error.after_attempts(ending.attempts)));
        }
    }

    #[inline(always)]
    fn announce(&self) {
        let work = self.work();
        if let Some(flight) = self.at().flight_run_by() {
            flight.started();
        }
        if !self.engine().bus.is_listening() {
            return;
        }
        if self.progress.as_ref().is_none_or(|progress| progress.inherited) {
            self.at().emit(None, || EventKind::Called {
                tool_name: self.at().call().name.clone(),
                side_effects: work.entry.spec().side_effects,
                class: work.class,
                queue_ms: u64::try_from(self.queued().as_millis()).unwrap_or(u64::MAX),
                policy_version: self.at().policy_of().into(),
                approval: work.consent.approval(),
                digest: self.at().digest(),
            });
        }
        self.at().emit(Some(self.number()), || EventKind::Attempt);
    }

    /// The span of the call: all its attempts share one (RT-9).
    #[inline(always)]
    fn span(&self) -> OpenSpan {
        OpenSpan::new(match &self.progress {
            Some(progress) if !progress.inherited => progress.span.clone(),
            _ => span::of_attempts(self.at(), || self.queued()),
        })
    }

    /// Records the end of the call in its span and releases the span, so that it closes before the result is written.
    #[inline]
    fn close(&mut self, span: OpenSpan, ending: &Ending) {
        if let Some(span) = span.heard() {
            span::ended(&span, self.at(), ending);
        }
        self.at().forget_span();
        if let Some(progress) = &mut self.progress {
            progress.span = tracing::Span::none();
        }
    }

    /// Executes the handler.
    async fn execute(&self) -> Executed {
        let mut execution = Contained::new(self.execution());
        let (verdict, stopped) = {
            // Destructured at once: the scrutinee of a match lives as long as the match, and would take room in the
            // task.
            let (result, stopped) = match self.engine().backend.execute(&execution) {
                Ok(Running { result, stopped }) => (result, stopped),
                Err(error) => return (Verdict::Sandbox(error), None),
            };
            let mut handler = within(&self.call, result);
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
        Execution { tool, args, cx, grant: self.grant(), placement, attempt: self, take_up: OnceLock::new() }
    }

    #[inline(always)]
    fn bounds(&self) -> Bounds {
        let work = self.work();
        let timeout =
            self.at().call().timeout.map_or_else(|| work.entry.attempt_timeout(), CallTimeout::duration);
        let timeout = self.grant().limits.wall_time.map_or(timeout, |wall| wall.min(timeout));
        let (first_ready_at, first_granted_at) = self.first_times();
        let cut_at = earlier(self.granted_at.checked_add(timeout), self.at().last_cut_at(first_granted_at));
        Bounds { timeout, cut_at, deadline: self.at().deadline_of(first_ready_at) }
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

    #[inline(always)]
    fn context(&self, bounds: &Bounds) -> ToolContext {
        let deadline = earlier(bounds.cut_at, bounds.deadline);
        let cx = ToolContext::in_scope(self.batch().clone(), self.call.index, self.number(), deadline);
        let spec = self.work().entry.spec();
        // A handler that is not dropped at its timeout has a token of its own, by which it is told.
        let outlives = spec.placement == Placement::Blocking || spec.timeout_grace.is_some();
        if outlives { cx.with_own_token() } else { cx }
    }

    /// Releases the permits before the result is written, except what a handler that still runs keeps.
    #[inline(always)]
    fn release(&mut self, still_running: bool, at: Instant) {
        if !std::mem::replace(&mut self.released, true) {
            self.release_once(still_running, at);
        }
    }

    fn release_once(&mut self, still_running: bool, at: Instant) {
        let keeps = |unit| a_zombie_keeps(self.work().class, unit);
        let admission = &self.engine().admission;
        self.kept = match self.at().close_nest() {
            Some(nest) => {
                let kept = nest.handler_over(&self.call, still_running.then_some(&keeps));
                still_running.then(|| Box::new(kept))
            }
            None if still_running => {
                let (kept, granted) = admission.become_zombie(self.held, keeps);
                granted.start();
                Some(Box::new(kept))
            }
            None => {
                admission.finish(self.held, at);
                None
            }
        };
        self.at().handler_released();
    }

    /// Runs the hook at the call's end (V1). If the task is dropped meanwhile, `Drop` writes the result kept here.
    async fn run_end_hook(&mut self, ending: Ending) -> Ending {
        let ending = self.ending_in_hook.insert(Box::new(ending));
        let outcome = self.call.at().outcome(Ending::clone(ending));
        gate::ended(self.engine(), &outcome, &self.batch().caller()).await;
        *self.ending_in_hook.take().expect("it was inserted above")
    }

    /// Writes the result. The call is quiescent now, or once its handler and all calls under it have stopped (V2).
    #[inline(always)]
    fn finish(&mut self, ending: Ending, still_running: Option<HandlerStopped>) {
        self.write(ending, still_running.is_some());
        if let (Some(stopped), Some(kept)) = (still_running, self.kept.take()) {
            let zombie = Zombie::new(self.call.clone(), self.number(), *kept);
            self.engine().tasks.spawn(zombie.watch(stopped));
        }
    }

    /// Writes the result, and reports upwards if the call is not simply quiescent with it.
    #[inline(always)]
    fn write(&mut self, ending: Ending, is_zombie: bool) {
        self.done = true;
        let has_nest = self.at().nest_of().is_some();
        let is_quiescent = !is_zombie && !has_nest;
        let on_flight = match self.at().flight_run_by().cloned() {
            None => {
                let step = if is_quiescent { Step::EndedAndQuiescent } else { Step::Ended };
                let call = self.at();
                call.end(call.slot().life(), End::Ran(ending, step));
                false
            }
            Some(flight) => {
                self.at().land(&flight, ending);
                true
            }
        };
        let report = match has_nest {
            true => self.call.next_report(),
            false if is_zombie => Some(Report::Listed),
            // Its followers become quiescent with it.
            false => on_flight.then_some(Report::Quiescent),
        };
        if let Some(report) = report {
            self.at().report_up(report);
        }
    }

    /// The end of a call whose handler goes on for others, from what is known now.
    fn detached_ending(&self, why: DetachReason) -> Ending {
        let error = match why {
            DetachReason::Cancelled => match self.at().stop_reason() {
                Some(Stop::Failed) => {
                    CallError::new(ErrorKind::Internal, "the engine failed while the call ran")
                }
                _ => CallError::new(ErrorKind::Cancelled, "the call was cancelled while it ran"),
            },
            DetachReason::PastDeadline => {
                CallError::new(ErrorKind::DeadlineExceeded, "the call's deadline passed")
            }
        };
        let mut error = error.after_attempts(self.number());
        if self.work().entry.spec().side_effects.is_read_only() {
            error.set_effect(Effect::Failed); // whatever the handler does, it changes nothing
        }
        let now = self.engine().clock.now();
        Ending {
            status: Err(Box::new(error)),
            queued: self.queued().into(),
            ran: now.saturating_duration_since(self.first_times().1).into(),
            attempts: self.number(),
            sandbox: self.grant().sandbox,
            cancel_requested: matches!(why, DetachReason::Cancelled),
            dedupe: Dedupe::Fresh,
        }
    }

    #[inline(always)]
    fn ending(&self, verdict: Verdict, ended_at: Instant) -> Ending {
        let (engine, work, grant) = (self.engine(), self.work(), self.grant());
        let stop = self.at().cancelled();
        let facts = Facts {
            entry: &work.entry,
            limits: &grant.limits,
            output_bytes_max: engine.limits.output_bytes_max,
            stop,
            attempt: self.number(),
            redactor: engine.redactor.as_ref(),
        };
        let has_run = verdict.has_run();
        let status = match (classify(verdict, &facts), &self.progress) {
            // It did not start this time, but it did before.
            (Err(error), Some(progress)) if !has_run => {
                Err(Box::new(error.after_error(progress.error.clone())))
            }
            (status, _) => status,
        };
        let attempts = self.number() - u32::from(!has_run);
        Ending {
            status,
            queued: self.queued().into(),
            ran: ended_at.saturating_duration_since(self.first_times().1).into(),
            attempts,
            sandbox: grant.sandbox,
            cancel_requested: stop.is_some(),
            dedupe: Dedupe::Fresh,
        }
    }
}

/// Polls the execution of a handler in the span of its call. Any panic of the tool's code, in its synchronous part or
/// in a drop too, becomes the panic of this call.
fn poll_caught(
    executing: Pin<&mut impl Future<Output = Executed>>,
    span: &OpenSpan,
    cx: &mut Context<'_>,
) -> Poll<Executed> {
    let _entered = span.enter();
    let polled = caught(|| executing.poll(cx));
    polled.unwrap_or_else(|panic| Poll::Ready((Verdict::Panicked(panic), None)))
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.done {
            self.release(false, self.engine().clock.now());
            let ending_in_hook = self.ending_in_hook.take().map(|ending| *ending);
            let ending =
                ending_in_hook.unwrap_or_else(|| Ending::vanished(vanished(self.number()), self.queued()));
            let kept = self.kept.take().map(|kept| *kept);
            if let Some(span) = self.at().forget_span() {
                span::ended(&span, self.at(), &ending);
            }
            self.keep(&ending, false);
            self.write(ending, kept.is_some());
            // There is no task left to wait for a handler that was given up.
            drop(kept.map(|kept| Zombie::new(self.call.clone(), self.number(), kept)));
        }
    }
}
