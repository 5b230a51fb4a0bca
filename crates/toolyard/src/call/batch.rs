//! The state that a batch's driver, attempts and approvals share.

use super::bell::Bell;
use super::deadline::Alarms;
use super::holding::Holding;
use super::ids::Ids;
use super::in_flight::InFlight;
use super::progress::{Bid, Progress};
use super::rare::Aside;
use super::reserve::Draws;
use super::run::{Run, Step};
use super::session::SessionCore;
use super::slot::{Delayed, Ending, Phase, Slot, Started};
use super::span;
use super::stop::Stop;
use crate::{
    admission::{Ask, Need},
    agent::EventPlace,
    budget::Allowance,
    call::nested::quiescence::Nested,
    gate::{self, Cleared},
    record::{Parent, UNKNOWN_TOOL},
};
use futures::future::AbortHandle;
use serde_json::Value;
use smallvec::SmallVec;
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use toolyard_core::{
    Call, CallError, Caller, Dedupe, Effect, ErrorKind, EventKind, Outcome, Routing, ToolClass,
    error::TerminalEvent,
    event::{CallDetails, Failure},
};

/// A place in a batch as a `u32`, which is enough for the largest batch allowed.
pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a batch is far smaller than 2^32")
}

/// The turn of a batch.
#[derive(Debug, Clone)]
pub(crate) struct TurnOf {
    pub(crate) number: u64,
    /// The budget of its calls; `None` if it is unlimited (RT-11).
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// Whether the batch is the whole turn. Calls that a handler dispatches belong to the turn of the handler's call.
    pub(crate) is_whole: bool,
}

/// The position of a batch in its session. A stream consists of several batches with one number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    pub(crate) number: u64,
    /// How many calls of the stream precede its first one.
    pub(crate) index: u32,
    /// The number of its first run, which may continue the last run of the stream so far.
    pub(crate) run: u32,
}

/// A batch in flight. It outlives its driver: calls that still run when their caller leaves end in it.
pub(crate) struct BatchState {
    /// Itself, for what outlives a borrow.
    pub(super) me: Weak<Self>,
    pub(crate) session: Arc<SessionCore>,
    /// Which call it was dispatched from, if a handler dispatched it.
    pub(crate) nested: Option<Box<Nested>>,
    pub(crate) turn: u64,
    pub(crate) draws: Draws,
    /// Whether it is its whole turn: then its start and end are the turn's.
    is_turn: bool,
    pub(crate) base: Base,
    /// The span it was dispatched in.
    pub(crate) parent: Parent,
    /// Fires when running calls are to stop. Created on demand: most batches never need it.
    pub(crate) cancel: OnceLock<CancellationToken>,
    pub(crate) cancelled: AtomicBool,
    pub(crate) slots: Box<[Slot]>,
    pub(crate) stopped: OnceLock<Stop>,
    /// The time limits of waiting calls, if there are any.
    pub(crate) alarms: OnceLock<Box<Alarms>>,
    /// Pending questions to the approver, by the place of their call; a batch that stops withdraws them.
    pub(crate) questions: Mutex<BTreeMap<u32, AbortHandle>>,
    /// Most batches have few runs, which then need no allocation.
    pub(crate) runs: SmallVec<[Run; 2]>,
    /// How many runs have a call without a result; not maintained for a single run.
    open_runs: AtomicUsize,
    pub(crate) failed: AtomicUsize,
    /// Whether the end of the batch has been announced. True from the start if nobody listens.
    end_announced: AtomicBool,
    pub(crate) bell: Bell,
    /// The memory of its results.
    pub(crate) holding: Holding,
    pub(crate) ids: Ids,
}

impl BatchState {
    pub(crate) fn new(
        session: Arc<SessionCore>,
        turn: TurnOf,
        base: Base,
        nested: Option<Box<Nested>>,
        parent: Parent,
        (mut slots, runs): (Vec<Slot>, SmallVec<[Run; 2]>),
        holding: Holding,
    ) -> Arc<Self> {
        for (number, run) in runs.iter().enumerate() {
            slots[run.calls()].iter_mut().for_each(|slot| slot.run = base.run + index(number));
        }
        let draws = Draws::of(&session, turn.allowance, &slots);
        let hears = session.engine.bus.is_listening() || parent.is_kept();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            end_announced: AtomicBool::new(slots.is_empty() || !hears),
            base,
            session,
            nested,
            parent,
            turn: turn.number,
            draws,
            is_turn: turn.is_whole,
            cancel: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            stopped: OnceLock::new(),
            alarms: OnceLock::new(),
            questions: Mutex::default(),
            open_runs: AtomicUsize::new(runs.len()),
            runs,
            failed: AtomicUsize::new(0),
            slots: slots.into_boxed_slice(),
            bell: Bell::default(),
            holding,
            ids: Ids::default(),
        })
    }

    /// Whether some call has no result yet.
    pub(crate) fn is_open(&self) -> bool {
        match &*self.runs {
            [run] => !run.is_ended(),
            _ => self.open_runs.load(Ordering::SeqCst) > 0,
        }
    }

    /// Counts down a run whose calls all have results; returns whether every call of the batch has one.
    pub(crate) fn run_has_ended(&self) -> bool {
        // Most batches are one run, which is the one that has just ended.
        self.runs.len() == 1 || self.open_runs.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Whether some call has no result yet, the end of the batch is still to be announced, or a handler goes on for
    /// calls of other batches, or for none any more.
    pub(crate) fn is_in_flight(&self) -> bool {
        let goes_on = |slot: &Slot| slot.aside().is_some_and(Aside::has_detached_run);
        self.is_open() || !self.end_announced.load(Ordering::SeqCst) || self.slots.iter().any(goes_on)
    }

    /// Announces the end of the batch: every call has its result.
    pub(crate) fn announce_end(&self) {
        let failed = self.failed();
        self.emit_turn(|| EventKind::TurnEnded { ok: self.slots.len() - failed, failed });
        self.parent.release();
        if !self.end_announced.load(Ordering::Relaxed) {
            self.end_announced.store(true, Ordering::SeqCst); // SeqCst like the counts: see `BatchEnds`
        }
        self.session.engine.batch_ends.notify();
    }

    /// What a call of this batch asks admission for.
    pub(crate) fn ask_for(&self, need: Need) -> Ask {
        let lineage = self.nested.as_ref().and_then(|nested| nested.lineage);
        // Deeper than that, all are alike to admission.
        let depth = u8::try_from(self.depth()).unwrap_or(u8::MAX);
        Ask { root: self.session.root(), depth, lineage, need }
    }

    /// The nesting depth of its calls.
    pub(crate) fn depth(&self) -> u32 {
        self.nested.as_ref().map_or(0, |nested| nested.depth)
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn routing_of(&self, run: usize) -> Routing {
        self.slots[self.calls_of(run).start].routing
    }

    /// The routing and the number of its last run.
    pub(crate) fn last_run(&self) -> Option<(Routing, u32)> {
        self.slots.last().map(|slot| (slot.routing, slot.run))
    }

    /// How many calls ended without an output.
    pub(crate) fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn calls_of(&self, run: usize) -> Range<usize> {
        self.runs[run].calls()
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        self.session.caller()
    }

    /// Emits an event of this batch's turn.
    pub(crate) fn emit_turn(&self, kind: impl FnOnce() -> EventKind) {
        if !self.is_turn {
            return;
        }
        let place =
            || EventPlace { turn: Some(self.turn), batch: Some(self.base.number), ..EventPlace::default() };
        self.session.emit_lazily(kind, place);
    }

    /// The number of the batch in its session.
    pub(crate) fn number(&self) -> u64 {
        self.base.number
    }

    pub(crate) fn withdraw_questions(&self) {
        let questions = std::mem::take(&mut *self.questions.lock().unwrap_or_else(PoisonError::into_inner));
        questions.values().for_each(AbortHandle::abort);
    }

    /// Whether a serial call of this run ended without an output.
    pub(crate) fn serial_failed(&self, run: usize) -> bool {
        let mut calls = self.calls_of(run).map(|at| &self.slots[at]);
        let is_failed = |slot: &Slot| matches!(&*slot.phase(), Phase::Ended(Ending { status: Err(_), .. }));
        calls.any(|slot| slot.routing.class() == Some(ToolClass::Serial) && is_failed(slot))
    }
}

impl<'a> InFlight<'a> {
    /// Notes that a handler is over and has released its permits: a drain waits for one that was detached.
    pub(crate) fn handler_released(self) {
        if self.is_detached() {
            self.engine().batch_ends.notify();
        }
    }

    pub(crate) fn run_of(self) -> &'a Run {
        &self.batch.runs[(self.slot().run - self.batch.base.run) as usize]
    }

    /// The permits and the deadline of a call whose handler runs: it has no result yet, or its flight goes on for
    /// other calls.
    pub(crate) fn started(self) -> Option<Started> {
        self.slot().started()
    }

    pub(crate) fn call(self) -> &'a Call {
        &self.slot().call
    }

    /// What the gate made of a call; `None` for a call that it did not let through.
    #[inline(always)]
    pub(crate) fn cleared(self) -> Option<&'a Cleared> {
        self.slot().work.as_ref()
    }

    #[inline(always)]
    pub(crate) fn work(self) -> &'a Cleared {
        self.cleared().expect("only calls that passed the gate are admitted")
    }

    /// The arguments of a call that the gate let through.
    pub(crate) fn args(self) -> &'a Arc<Value> {
        self.work().args.of(self.call())
    }

    /// Emits an event of this call if anyone listens.
    #[inline]
    pub(crate) fn emit(self, attempt: Option<u32>, kind: impl FnOnce() -> EventKind) {
        let slot = &self.slot();
        self.session().emit_lazily(kind, || EventPlace {
            turn: Some(self.batch.turn),
            batch: Some(self.batch.base.number),
            run: Some(slot.run),
            call_id: Some(slot.id().clone()),
            index: Some(self.batch.base.index + self.index),
            attempt,
        });
    }

    /// Whether the call names a tool that the engine has.
    pub(crate) fn is_known(self) -> bool {
        self.slot().known
    }

    /// The tool's name as events show it.
    pub(crate) fn shown_name(self) -> Arc<str> {
        if self.is_known() { self.call().name.clone() } else { UNKNOWN_TOOL.into() }
    }

    /// Ends a call that has not started, whatever it waits for. Returns `false` if it has started, has ended, or
    /// still waits for the result of its flight.
    pub(crate) fn end_unstarted(self, error: impl FnOnce() -> CallError) -> bool {
        let phase = self.slot().phase();
        let granted = match &*phase {
            Phase::Started(_) | Phase::Ended(_) | Phase::Taken => return false,
            // A permit that has just been granted finds the call ended and is released.
            Phase::Queued { ticket, .. } => Some(self.engine().admission.leave(*ticket)),
            Phase::Following { ready_at } => {
                let ready_at = *ready_at;
                return self.leave_flight(phase, ready_at, error());
            }
            Phase::Delayed(Delayed::Rate { ticket, .. }) => {
                self.work().entry.guard().line.leave(*ticket);
                None
            }
            Phase::Asking { .. } | Phase::Waiting | Phase::Delayed(Delayed::Backoff(_)) => None,
        };
        self.end_waiting(phase, error());
        if let Some(granted) = granted {
            granted.start();
        }
        true
    }

    /// Ends a waiting call whose phase the caller has checked.
    pub(crate) fn end_waiting(self, mut phase: MutexGuard<'_, Phase>, error: CallError) {
        let before = std::mem::replace(&mut *phase, Phase::Waiting);
        self.end_from(phase, before, error);
    }

    /// The same for a call whose bid is not in its phase.
    pub(crate) fn end_with(self, phase: MutexGuard<'_, Phase>, bid: Bid, error: CallError) {
        let before =
            bid.progress.map_or(Phase::Waiting, |progress| Phase::Delayed(Delayed::Backoff(progress)));
        self.end_from(phase, before, error);
    }

    fn end_from(self, mut phase: MutexGuard<'_, Phase>, before: Phase, error: CallError) {
        if matches!(before, Phase::Asking { .. }) {
            let kind = error.kind;
            self.emit(None, || EventKind::ConfirmationResolved {
                approved: false,
                error: Some(kind),
                by: None,
                digest: None,
            });
        }
        let error = self.batch.shown_error(error);
        let runs_flight = self.flight_run_by().is_some();
        let (ending, progress) = self.end_of(before.into_progress(), error);
        if progress.is_some() {
            self.spawn_end_hook(&ending);
        }
        *phase = Phase::Ended(ending);
        drop(phase);
        self.settle(progress.is_some());
        // A call that has run for a flight becomes quiescent with the flight.
        let step = if runs_flight && progress.is_some() { Step::Ended } else { Step::EndedAndQuiescent };
        self.count_down(false, step);
        if runs_flight {
            self.pass_on(progress);
        } else if let Some(progress) = progress {
            self.spare_retry(*progress);
        }
    }

    /// Runs the end hook of a call that has run and ends without a task of its own. The call's end does not wait for
    /// the hook.
    pub(crate) fn spawn_end_hook(self, ending: &Ending) {
        if self.engine().hooks.is_none() {
            return;
        }
        let (session, outcome) = (self.session().clone(), self.outcome(ending.clone()));
        self.engine().tasks.spawn(async move {
            gate::ended(&session.engine, &outcome, &session.caller()).await;
        });
    }

    /// The end of a call that waited for an attempt, with its events emitted; also returns its failed attempts.
    fn end_of(self, progress: Option<Box<Progress>>, error: CallError) -> (Ending, Option<Box<Progress>>) {
        let Some(progress) = progress else {
            let error = error.not_started();
            self.emit(None, || self.unstarted_event(&error));
            let ending = Ending::unstarted(error);
            span::without_attempt(self, &ending);
            return (ending, None);
        };
        let ending = progress.ending(error, self.grant().sandbox, self.engine().clock.now());
        self.forget_span();
        match progress.inherited {
            true => span::without_attempt(self, &ending),
            false => span::ended(&progress.span, self, &ending),
        }
        // A call that has taken over a flight may never have started itself.
        self.emit(None, || self.started_event(&ending));
        (ending, Some(progress))
    }

    fn unstarted_event(self, error: &CallError) -> EventKind {
        let failure = Failure::new(self.shown_name(), error, 0, 0);
        match error.kind.terminal_event() {
            TerminalEvent::InputInvalid => EventKind::InputInvalid(failure),
            TerminalEvent::Denied => EventKind::Denied(failure),
            TerminalEvent::Failed => EventKind::Failed(failure),
        }
    }

    /// Ends a call that has started. Its permits have been released, or stay with its handler, which still runs.
    #[inline(always)]
    pub(crate) fn end_started(self, ending: Ending, is_quiescent: bool) {
        let ok = ending.status.is_ok();
        self.settle(ending.attempts > 0);
        if ending.dedupe != Dedupe::Fresh {
            span::without_attempt(self, &ending);
        }
        // Under the lock, so that no streamed output follows the terminal event.
        let mut phase = self.slot().phase();
        self.stream_ends();
        self.emit(None, || self.started_event(&ending));
        let _watch = phase.take_waker();
        *phase = Phase::Ended(ending);
        drop(phase);
        self.count_down(ok, if is_quiescent { Step::EndedAndQuiescent } else { Step::Ended });
    }

    /// Whether a call has ended while the flight in its slot goes on.
    pub(crate) fn is_detached(self) -> bool {
        self.slot().aside().is_some_and(Aside::is_detached)
    }

    /// The call's outcome as its caller will see it.
    pub(crate) fn outcome(self, ending: Ending) -> Outcome {
        let mut outcome = self.slot().outcome(ending);
        BatchState::shown(self.engine().results_redactor.as_ref(), [&mut outcome]);
        outcome
    }

    pub(crate) fn started_event(self, ending: &Ending) -> EventKind {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (queue_ms, duration_ms) = (millis(ending.queued.into()), millis(ending.ran.into()));
        let tool_name = self.shown_name();
        match &ending.status {
            Ok(output) => EventKind::Completed {
                tool_name,
                duration_ms,
                queue_ms,
                bytes: output.size(),
                dedupe: ending.dedupe,
                sandbox: ending.sandbox,
                cancel_requested: ending.cancel_requested,
                details: CallDetails::of_output(output),
            },
            Err(error) => {
                let mut failure = Failure::new(tool_name, error, queue_ms, duration_ms);
                failure.dedupe = ending.dedupe;
                EventKind::Failed(failure)
            }
        }
    }

    /// Withdraws the question about one call.
    pub(crate) fn withdraw_question(self) {
        let question =
            self.batch.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.index);
        question.iter().for_each(AbortHandle::abort); // outside of the lock, because it wakes a task
    }
}

impl Drop for BatchState {
    fn drop(&mut self) {
        self.release_results();
        // A loop, not recursion: the innermost batch of a long chain may hold the last reference to all the others.
        let mut above = self.nested.take();
        while let Some(nested) = above {
            above = Arc::into_inner(nested.call.batch).and_then(|mut batch| batch.nested.take());
        }
    }
}

/// The error of a call whose task was dropped because its runtime was shut down (SC-3).
pub(crate) fn vanished(attempts: u32) -> CallError {
    let mut error = CallError::new(ErrorKind::Internal, "the call's task was dropped before it ended");
    error.set_effect(Effect::Unknown);
    error.after_attempts(attempts)
}
