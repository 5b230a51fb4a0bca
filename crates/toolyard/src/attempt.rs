//! One execution of a call, from its permits to its result.
//!
//! ```text
//!   permits ─► tool.called, dispatch.attempt ─► Backend::execute ─► supervise ─► classify ─► permits back ─► result
//!                                                                  │ result, panic
//!                                                                  │ timeout            handler dropped at once
//!                                                                  └ cancel ─► grace ─► abandon
//! ```
//!
//! An attempt has a task of its own while it runs (`runner.rs`); what the permit stands for is moved into it, so
//! nothing runs without and nothing that ended keeps it (SC-2). A panic ends this call alone. A blocking handler
//! cannot be dropped: its call ends on time, and what it holds goes on with it until it stops (SC-6).

mod again;
mod backend;
mod blocking;
mod classify;
mod next;
mod runner;
mod supervise;
mod watch;
mod zombie;

pub use backend::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub use blocking::{Blocking, BlockingThreads};
pub(crate) use next::Next;
pub(crate) use runner::Runners;

use crate::{
    admission::Held,
    batch::{BatchState, Bid, Ending, Progress, Stop, earlier, vanished},
    engine::EngineCore,
    gate::Cleared,
    guard::Slots,
    nesting::{CallRef, Up, within},
    retry::Decision,
    telemetry::{self, OpenSpan},
};
use classify::{Facts, classify, redact};
use futures::FutureExt;
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use supervise::{Verdict, supervise};
use tokio::{sync::oneshot, time::Instant};
use toolyard_core::{CallError, Dedupe, Effect, ErrorKind, EventKind, Grant, Placement, ToolContext};
use watch::{Bounds, Parting};
use zombie::{Zombie, a_zombie_keeps};

/// What an attempt starts with.
pub(crate) struct Go {
    pub(crate) held: Held,
    pub(crate) slots: Slots,
    pub(crate) bid: Bid,
    pub(crate) granted_at: Instant,
}

/// A call that has its permits and no result yet. Should it vanish, dropping it gives them back and writes one
/// (SC-3). Small, for it is moved to its runner.
pub(crate) struct Attempt {
    call: CallRef,
    held: Held,
    ready_at: Instant,
    granted_at: Instant,
    /// The breakers' leave.
    slots: Option<Slots>,
    /// What came before, if this is not the first.
    progress: Option<Box<Progress>>,
    /// What a handler that was given up goes on holding.
    kept: Option<Box<Held>>,
    /// The result, while the hook at its end is told.
    told: Option<Box<Ending>>,
    /// Its key knows what came of it.
    kept_result: bool,
    released: bool,
    done: bool,
}

/// Comes to its end when a handler does that could not be dropped.
type Stops = oneshot::Receiver<bool>;

/// What came of a handler.
type Executed = (Verdict, Option<Stops>);

/// What came of a call.
type CameTo = (Ending, Option<Stops>);

impl Attempt {
    pub(crate) fn new(call: CallRef, go: Go) -> Self {
        let Go { held, slots, bid: Bid { ready_at, progress }, granted_at } = go;
        let slots = Some(slots);
        Self {
            call,
            held,
            ready_at,
            granted_at,
            slots,
            progress,
            kept: None,
            told: None,
            kept_result: false,
            released: false,
            done: false,
        }
    }

    /// Its number, from 1.
    fn number(&self) -> u32 {
        self.progress.as_ref().map_or(1, |progress| progress.attempts + 1)
    }

    fn batch(&self) -> &Arc<BatchState> {
        &self.call.batch
    }

    fn engine(&self) -> &EngineCore {
        &self.call.batch.session.engine
    }

    fn work(&self) -> &Cleared {
        self.call.batch.work(self.call.index)
    }

    fn grant(&self) -> &Grant {
        self.call.batch.grant(self.call.index)
    }

    /// Runs the call on a task of its own.
    pub(crate) fn spawn(self) {
        if let Some(attempt) = Next::offer(self) {
            let runners = attempt.engine().runners.clone();
            runners.run(attempt);
        }
    }

    /// Runs the call to its one result, or leaves it to wait for its next attempt. Nothing is left to be done then but to
    /// drop it, and to run the attempt that its permits have let go, if there is one.
    #[expect(
        clippy::manual_async_fn,
        reason = "the arguments of an async fn have their place in its future twice"
    )]
    pub(crate) fn run(&mut self) -> impl Future<Output = Option<Next>> + Send {
        async move {
            self.announce();
            let span = self.span();
            let executed = {
                // Pinned where it is made and polled by hand: it is large, and each wrapper would move it once.
                let (mut executing, span) = (pin!(self.execute()), &span);
                poll_fn(move |cx| poll_caught(executing.as_mut(), span, cx)).await
            };
            if self.engine().gate.hooks.is_some() {
                // Boxed: a call without hooks has no room for them in its task.
                Box::pin(self.end_with_hook(executed, span.into_span())).await;
                return None;
            }
            let next = self.ends_soon().then(|| Next::of(self.engine()));
            if let Some((ending, still_running)) = self.come_to(executed, span.into_span()) {
                self.finish(ending, still_running);
            }
            next
        }
    }

    /// Whether nothing that takes its time lies between the end of its handler and its own: no secrets are looked for, and
    /// nobody else's code is told of it.
    fn ends_soon(&self) -> bool {
        self.engine().redactor.is_none() && !self.engine().bus.is_kept()
    }

    async fn end_with_hook(&mut self, executed: Executed, span: tracing::Span) {
        let Some((mut ending, still_running)) = self.come_to(executed, span) else { return };
        // The hook of a call that has ended alone has been told of that.
        if !self.batch().is_detached(self.call.index) {
            ending = self.tell_hook(ending).await;
        }
        self.finish(ending, still_running);
    }

    /// What came of the call, with its permits given back; `None` when it waits for its next attempt.
    fn come_to(&mut self, (verdict, still_running): Executed, span: tracing::Span) -> Option<CameTo> {
        let ended_at = self.engine().clock.now();
        let no_side_effect = verdict.has_no_side_effect();
        let mut ending = self.ending(verdict, ended_at);
        // Counted while it holds its permits: who is started by them knows of a breaker that has opened.
        self.count(&ending, ended_at);
        if !faulty!(PermitHeldInBackoff) {
            self.release(still_running.is_some(), ended_at);
        }
        if let Some(redactor) = &self.engine().redactor {
            let limits = &self.grant().limits;
            redact(&mut ending, redactor, limits, self.engine().gate.limits.output_bytes_max);
        }
        if let Err(error) = &mut ending.status {
            match self.after_failure(error, no_side_effect, still_running.is_some(), ended_at) {
                Decision::Stop(why) => error.retry_stopped = why,
                Decision::Retry { delay, paid } => {
                    self.try_again(ending, paid, delay, span);
                    return None;
                }
            }
        }
        self.close(span, &ending);
        self.release(still_running.is_some(), ended_at);
        self.succeeded(&ending);
        self.keep(&ending, no_side_effect);
        Some((ending, still_running))
    }

    fn announce(&self) {
        let CallRef { batch, index } = &self.call;
        let work = self.work();
        if let Some(flight) = batch.flight_run_by(*index) {
            flight.started();
        }
        if !self.engine().bus.is_listening() {
            return;
        }
        if self.progress.as_ref().is_none_or(|progress| progress.inherited) {
            batch.emit(*index, None, || EventKind::Called {
                tool_name: batch.call(*index).name.clone(),
                side_effects: work.entry.spec().side_effects,
                class: work.class,
                queue_ms: u64::try_from(self.queued().as_millis()).unwrap_or(u64::MAX),
                policy_version: batch.policy_of(*index).into(),
                approval: work.consent.approval(),
                digest: batch.digest(*index),
            });
        }
        batch.emit(*index, Some(self.number()), || EventKind::Attempt);
    }

    /// The span of the call: all its attempts share one (RT-9).
    fn span(&self) -> OpenSpan {
        OpenSpan::new(match &self.progress {
            Some(progress) if !progress.inherited => progress.span.clone(),
            _ => telemetry::of_attempts(self.batch(), self.call.index, || self.queued()),
        })
    }

    /// Notes how the call ended in its span, and keeps that no longer: it is told of before the result is.
    fn close(&mut self, span: tracing::Span, ending: &Ending) {
        telemetry::ended(&span, self.batch(), ending);
        self.batch().forget_span(self.call.index);
        if let Some(progress) = &mut self.progress {
            progress.span = tracing::Span::none();
        }
    }

    /// Executes the handler.
    async fn execute(&self) -> Executed {
        let execution = match self.execution() {
            Ok(execution) => execution,
            Err(panic) => return (Verdict::Panicked(panic), None),
        };
        // Taken apart at once: what a match looks at lives as long as the match, and would have its place in the task.
        let (result, stopped) = match self.engine().backend.execute(&execution) {
            Ok(Running { result, stopped }) => (result, stopped),
            Err(error) => return (Verdict::Sandbox(error), None),
        };
        let mut result = within(&self.call, AssertUnwindSafe(result).catch_unwind());
        let verdict = supervise(Pin::new(&mut result), &execution).await;
        if verdict.gave_up() {
            execution.cx.cancel_own(); // a blocking handler may look at it
        }
        (verdict, stopped.after())
    }

    /// A fresh tool and what it is to do; the panic of one that cannot be made.
    fn execution(&self) -> Result<Execution<'_>, Box<dyn Any + Send>> {
        let work = self.work();
        let tool = catch_unwind(AssertUnwindSafe(|| work.entry.create()))?;
        let (cx, args) = (self.context(&self.bounds()), self.batch().args(self.call.index));
        let placement = work.entry.spec().placement;
        Ok(Execution { tool, args, cx, grant: self.grant(), placement, attempt: self })
    }

    fn bounds(&self) -> Bounds {
        let CallRef { batch, index } = &self.call;
        let work = self.work();
        let timeout = batch.call(*index).timeout.unwrap_or_else(|| work.entry.attempt_timeout());
        let timeout = self.grant().limits.wall_time.map_or(timeout, |wall| wall.min(timeout));
        let cut_at = self.granted_at.checked_add(timeout);
        Bounds { timeout, cut_at, deadline: batch.deadline_of(*index, self.began().0) }
    }

    /// When the call was ready, and had its first permits.
    fn began(&self) -> (Instant, Instant) {
        let first = (self.ready_at, self.granted_at);
        self.progress.as_ref().map_or(first, |progress| (progress.ready_at, progress.granted_at))
    }

    /// How long the call waited for its first permits.
    fn queued(&self) -> Duration {
        let (ready_at, granted_at) = self.began();
        // At once, mostly: that is told without arithmetic.
        if granted_at == ready_at { Duration::ZERO } else { granted_at.saturating_duration_since(ready_at) }
    }

    fn context(&self, bounds: &Bounds) -> ToolContext {
        let deadline = earlier(bounds.cut_at, bounds.deadline);
        let cx = ToolContext::in_scope(self.batch().clone(), self.call.index, self.number(), deadline);
        let spec = self.work().entry.spec();
        // One that is not dropped at its timeout has a token of its own, to be told of it.
        let outlives = spec.placement == Placement::Blocking || spec.timeout_grace.is_some();
        if outlives { cx.with_own_token() } else { cx }
    }

    /// Gives the permits back, before the result is written; all but what a handler that still runs holds.
    fn release(&mut self, still_running: bool, at: Instant) {
        if std::mem::replace(&mut self.released, true) {
            return;
        }
        let class = self.work().class;
        let keeps = |unit| a_zombie_keeps(class, unit);
        let admission = &self.engine().admission;
        self.kept = match self.batch().close_nest(self.call.index) {
            Some(nest) => {
                let kept = nest.over(&self.call, still_running.then_some(&keeps));
                still_running.then(|| Box::new(kept))
            }
            None if faulty!(PermitLeakedOnCancel) && self.batch().cancelled(self.call.index).is_some() => {
                None
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
    }

    /// The hook at the call's end (V1). Should the task vanish meanwhile, the result is there.
    async fn tell_hook(&mut self, ending: Ending) -> Ending {
        let ending = self.told.insert(Box::new(ending));
        let outcome = self.call.batch.outcome(self.call.index, Ending::clone(ending));
        self.engine().gate.ended(&outcome, &self.batch().caller()).await;
        *self.told.take().expect("it was put there above")
    }

    /// Writes the result. The call is quiescent with it, or when its handler and all under it have stopped (V2).
    fn finish(&mut self, ending: Ending, still_running: Option<Stops>) {
        self.write(ending, still_running.is_some());
        if let (Some(stopped), Some(kept)) = (still_running, self.kept.take()) {
            let zombie = Zombie::new(self.call.clone(), self.number(), *kept);
            self.engine().tasks.spawn(zombie.watch(stopped));
        }
    }

    /// Writes the result, and tells what is left of the call if anything is.
    fn write(&mut self, ending: Ending, is_zombie: bool) {
        self.done = true;
        let CallRef { batch, index } = &self.call;
        let has_nest = batch.nest_of(*index).is_some();
        let rests = !is_zombie && !has_nest;
        let on_flight = match batch.flight_run_by(*index).cloned() {
            None => {
                batch.end_started(*index, ending, rests);
                false
            }
            Some(flight) => {
                batch.end_flight(*index, &flight, ending);
                true
            }
        };
        let up = match has_nest {
            true => self.call.news(),
            false if is_zombie => Some(Up::Listed),
            // With it those rest who share its flight.
            false => on_flight.then_some(Up::Quiescent),
        };
        if let Some(up) = up {
            batch.rises(*index, up);
        }
    }

    /// How the call ends while its handler goes on for others: with what is known now.
    fn parting(&self, why: Parting) -> Ending {
        let error = match why {
            Parting::Cancelled => match self.batch().wants_end(self.call.index) {
                Some(Stop::Failed) => {
                    CallError::new(ErrorKind::Internal, "the engine failed while the call ran")
                }
                _ => CallError::new(ErrorKind::Cancelled, "the call was cancelled while it ran"),
            },
            Parting::PastDeadline => {
                CallError::new(ErrorKind::DeadlineExceeded, "the call's deadline passed")
            }
        };
        let mut error = error.after_attempts(self.number());
        if self.work().entry.spec().side_effects.is_read_only() {
            error.effect = Effect::Failed; // whatever it does, it changes nothing
        }
        let now = self.engine().clock.now();
        Ending {
            status: Err(Box::new(error)),
            queued: self.queued().into(),
            ran: now.saturating_duration_since(self.began().1).into(),
            attempts: self.number(),
            sandbox: self.grant().sandbox,
            cancel_requested: matches!(why, Parting::Cancelled),
            dedupe: Dedupe::Fresh,
        }
    }

    fn ending(&self, verdict: Verdict, ended_at: Instant) -> Ending {
        let (engine, work, grant) = (self.engine(), self.work(), self.grant());
        let stop = self.batch().cancelled(self.call.index);
        let facts = Facts {
            entry: &work.entry,
            limits: &grant.limits,
            output_bytes_max: engine.gate.limits.output_bytes_max,
            stop,
            attempt: self.number(),
            redactor: engine.redactor.as_ref(),
        };
        let has_run = verdict.has_run();
        let status = match (classify(verdict, &facts), &self.progress) {
            // It never started this time, and did before.
            (Err(error), Some(progress)) if !has_run => {
                Err(Box::new(error.after_error(progress.error.clone())))
            }
            (status, _) => status,
        };
        let attempts = self.number() - u32::from(!has_run);
        Ending {
            status,
            queued: self.queued().into(),
            ran: ended_at.saturating_duration_since(self.began().1).into(),
            attempts,
            sandbox: grant.sandbox,
            cancel_requested: stop.is_some(),
            dedupe: Dedupe::Fresh,
        }
    }
}

/// Polls what executes a handler, in the span of its call. Whatever of the tool panics, its synchronous part or its drop:
/// that is this call's panic.
fn poll_caught(
    executing: Pin<&mut impl Future<Output = Executed>>,
    span: &OpenSpan,
    cx: &mut Context<'_>,
) -> Poll<Executed> {
    let _entered = span.enter();
    let polled = catch_unwind(AssertUnwindSafe(|| executing.poll(cx)));
    polled.unwrap_or_else(|panic| Poll::Ready((Verdict::Panicked(panic), None)))
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.done {
            self.release(false, self.engine().clock.now());
            let told = self.told.take().map(|told| *told);
            let ending = told.unwrap_or_else(|| Ending::vanished(vanished(self.number()), self.queued()));
            let kept = self.kept.take().map(|kept| *kept);
            if let Some(span) = self.batch().forget_span(self.call.index) {
                telemetry::ended(&span, self.batch(), &ending);
            }
            self.keep(&ending, false);
            self.write(ending, kept.is_some());
            // Nobody is left to wait for a handler that was given up.
            drop(kept.map(|kept| Zombie::new(self.call.clone(), self.number(), kept)));
        }
    }
}
