//! An attempt from its start to its call's end.

use crate::{
    call::{
        attempt::{
            Attempt,
            classify::redact,
            execute::{Executed, HandlerStopped},
            next::Next,
            runner::Job,
            supervise::Verdict,
        },
        ending::Ending,
        life::LateResult,
        span,
    },
    record::{OpenSpan, Pending, When},
    tasks::caught,
    tool::Decision,
};
use futures::future::BoxFuture;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};
use tokio::time::Instant;
use toolyard_core::{EventKind, set_edited};

/// The end of a call, where its handler's end is reported if that still runs, and when its handler ended.
type CallEnd = (Ending, Option<HandlerStopped>, NoSideEffect, Instant);

/// Whether the handler itself says that it changed nothing.
type NoSideEffect = bool;

impl Job for Attempt {
    type Next = Next;

    /// Runs the call to its result, or leaves it waiting for its next attempt. Afterwards the caller only has to drop
    /// it, and to run the attempt unblocked by its permits, if any.
    #[expect(clippy::manual_async_fn, reason = "an async fn stores its arguments in its future twice")]
    fn run(&mut self) -> impl Future<Output = Option<Next>> + Send {
        async move {
            // Boxed, so that a call that is not recorded needs no room for this in its task.
            if self.is_start_recorded() && !Box::pin(self.may_start()).await {
                return None;
            }
            self.announce();
            let span = self.span();
            let executed = {
                // Pinned in place and polled by hand: it is large, and each wrapper would move it once more.
                let (mut executing, span) = (pin!(self.execute()), &span);
                poll_fn(move |cx| poll_caught(executing.as_mut(), span, cx)).await
            };
            let rest = match self.end(executed, span) {
                Ok(next) => return next,
                Err(rest) => rest,
            };
            rest.await;
            None
        }
    }

    fn unblocked(next: Next) -> Option<Self> {
        next.taken()
    }
}

impl Attempt {
    /// Runs the call on a task of its own.
    pub(crate) fn spawn(self) {
        if let Some(attempt) = Next::offer(self) {
            let runners = attempt.engine().runners.clone();
            runners.run(attempt);
        }
    }

    /// Ends the call, or leaves it waiting for its next attempt. If a hook comes before its end, or the wait for its record,
    /// all that is the error: boxed, so that a call without them needs no room for it in its task.
    #[inline(always)]
    fn end(&mut self, executed: Executed, span: OpenSpan) -> Result<Option<Next>, BoxFuture<'_, ()>> {
        let next = self.ends_soon().then(|| Next::of(self.engine()));
        let Some((mut ending, still_running, no_side_effect, ended_at)) = self.conclude(executed, span)
        else {
            return Ok(next);
        };
        if self.engine().recorder.is_some() {
            if let Some(pending) = self.give_result(&mut ending) {
                self.awaits_record(ending, no_side_effect);
                // What it has unblocked does not wait for the record.
                drop(next);
                return Err(Box::pin(self.finish_recorded(pending, still_running)));
            }
            self.keep(&ending, no_side_effect, Some(ended_at));
        }
        if self.engine().hooks.is_some() {
            return Err(Box::pin(self.finish_hooked(ending, still_running)));
        }
        self.finish(ending, still_running, When::At(ended_at));
        Ok(next)
    }

    /// Whether nothing slow happens between the end of the handler and that of the call: no redaction, no code of hooks,
    /// nor of a recorder but for one that makes little of such calls, and no writer has to be started. A sink is in memory,
    /// and every call passes it with its permits.
    #[inline]
    fn ends_soon(&self) -> bool {
        let engine = self.engine();
        engine.redactor.is_none()
            && !engine.bus.has_writers()
            && engine.hooks.is_none()
            && !self.are_attempts_recorded()
    }

    /// Ends the call once its record is durable, and after the hook.
    async fn finish_recorded(&mut self, pending: Pending, mut still_running: Option<HandlerStopped>) {
        let (ending, late) = self.recorded(pending, &mut still_running).await;
        self.finish_hooked(ending, still_running).await;
        if let Some(ok) = late {
            self.at().late_result(LateResult { attempt: self.number(), ok });
        }
    }

    async fn finish_hooked(&mut self, mut ending: Ending, still_running: Option<HandlerStopped>) {
        // For a detached call the hook has already run.
        if self.engine().hooks.is_some() && !self.at().is_detached() {
            ending = self.run_end_hook(ending).await;
        }
        self.finish(ending, still_running, When::Now);
    }

    /// Ends the attempt: counts it, releases its permits and decides on a retry. Returns the end of the call; `None`
    /// if it waits for its next attempt.
    #[inline(always)]
    fn conclude(&mut self, (verdict, still_running): Executed, span: OpenSpan) -> Option<CallEnd> {
        let ended_at = self.engine().clock.now();
        let (no_side_effect, sandbox) = (verdict.has_no_side_effect(), verdict.of_sandbox());
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
        self.count(&ending, sandbox, ended_at);
        self.release(still_running.is_some(), ended_at);
        if let Some(redactor) = &self.engine().results_redactor {
            let limits = &self.confinement().limits;
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
        // Last, because an error may have taken the place of the output.
        set_edited(&mut ending.status, self.at().edited());
        self.close(span, &ending);
        self.succeeded(&ending);
        if self.engine().recorder.is_none() {
            self.keep(&ending, no_side_effect, Some(ended_at));
        }
        Some((ending, still_running, no_side_effect, ended_at))
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
        if let Some(flight) = self.at().flight_of_attempt() {
            flight.started();
        }
        if self.engine().bus.is_listening() {
            self.announce_to_listeners();
        }
    }

    #[cold]
    #[inline(never)]
    fn announce_to_listeners(&self) {
        let (call, work) = (self.at(), self.work());
        let is_first = self.progress.as_ref().is_none_or(|progress| progress.inherited);
        let digest = if is_first { call.digest() } else { None };
        let mut publisher = call.session().publisher(When::At(self.granted_at), 1 + u32::from(is_first));
        if is_first {
            let called = EventKind::Called {
                tool_name: publisher.name(&call.call().name),
                side_effects: work.entry.spec().side_effects,
                class: work.class,
                queue_ms: u64::try_from(self.queued().as_millis()).unwrap_or(u64::MAX),
                policy_version: call.policy_of().into(),
                approval: work.consent.approval(),
                digest,
                edited: work.edit().is_some(),
            };
            publisher.publish(called, call.place(None));
        }
        publisher.publish(EventKind::Attempt, call.place(Some(self.number())));
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
}

/// Polls the execution of a handler in the span of its call. Any panic of the tool's code, in its synchronous part or
/// in a drop too, becomes the panic of this call.
#[inline(never)]
fn poll_caught(
    executing: Pin<&mut impl Future<Output = Executed>>,
    span: &OpenSpan,
    cx: &mut Context<'_>,
) -> Poll<Executed> {
    let _entered = span.enter();
    let polled = caught(|| executing.poll(cx));
    polled.unwrap_or_else(|panic| Poll::Ready((Verdict::Panicked(panic), None)))
}
