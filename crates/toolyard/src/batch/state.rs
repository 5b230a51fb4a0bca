//! What a batch's driver, attempts and approvals share.

use super::ledger::{Ending, Phase, Slot};
use super::stop::Stop;
use crate::{
    admission::{Admitted, Permit, Waiter},
    attempt,
    gate::Cleared,
    pool::PoolState,
    registry::not_found,
    session::{SessionCore, Where},
};
use futures::task::AtomicWaker;
use std::{
    future::poll_fn,
    ops::Range,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use toolyard_core::{
    Call, CallError, Caller, Effect, ErrorKind, EventKind, Outcome, Reason, ToolClass, error::TerminalEvent,
    event::Failure,
};

/// The name of a tool that no registry has, in events (OB-4).
const UNKNOWN_TOOL: &str = "_unknown";

/// A place in a batch, as small as its bound allows.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a batch is far smaller than 2^32")
}

/// A run of the batch.
struct Run {
    calls: Range<usize>,
    /// Calls without a result.
    open: AtomicUsize,
    /// Calls that are not quiescent: no result, or a handler that goes on behind it (V2).
    active: AtomicUsize,
}

impl Run {
    fn new(calls: Range<usize>) -> Self {
        let (open, active) = (AtomicUsize::new(calls.len()), AtomicUsize::new(calls.len()));
        Self { calls, open, active }
    }
}

/// When a call became ready and when it was granted its permits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) ready_at: Instant,
    pub(crate) granted_at: Instant,
}

/// A batch in the air. It outlives its driver: calls that run when their caller leaves end in it.
pub(crate) struct BatchState {
    pub(crate) session: Arc<SessionCore>,
    pub(crate) turn: u64,
    pub(crate) number: u64,
    /// Fires when running calls are to stop.
    pub(crate) cancel: CancellationToken,
    pub(super) slots: Box<[Slot]>,
    pub(super) stopped: OnceLock<Stop>,
    /// Questions to the approver that are in the air; a batch that stops withdraws them.
    pub(super) questions: Mutex<Vec<AbortHandle>>,
    runs: Box<[Run]>,
    open: AtomicUsize,
    failed: AtomicUsize,
    driver: AtomicWaker,
}

impl BatchState {
    pub(super) fn new(
        session: Arc<SessionCore>,
        turn: u64,
        slots: Vec<Slot>,
        runs: impl IntoIterator<Item = Range<usize>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number: session.next_batch(),
            session,
            turn,
            cancel: CancellationToken::new(),
            stopped: OnceLock::new(),
            questions: Mutex::new(Vec::new()),
            runs: runs.into_iter().map(Run::new).collect(),
            open: AtomicUsize::new(slots.len()),
            failed: AtomicUsize::new(0),
            slots: slots.into_boxed_slice(),
            driver: AtomicWaker::new(),
        })
    }

    /// Whether some call has no result yet.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn calls_of(&self, run: usize) -> Range<usize> {
        self.runs[run].calls.clone()
    }

    pub(crate) fn call(&self, index: u32) -> &Call {
        &self.slots[index as usize].call
    }

    pub(crate) fn work(&self, index: u32) -> &Cleared {
        let work = &self.slots[index as usize].work;
        work.as_ref().expect("only calls that the gate let through are admitted")
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        self.session.caller()
    }

    /// Emits an event of this call, if anybody would see it.
    pub(crate) fn emit(&self, index: u32, attempt: Option<u32>, kind: impl FnOnce() -> EventKind) {
        let slot = &self.slots[index as usize];
        self.session.emit_lazily(kind, || Where {
            turn: Some(self.turn),
            batch: Some(self.number),
            run: Some(slot.run),
            call_id: Some(slot.id().clone()),
            index: Some(index),
            attempt,
        });
    }

    /// Emits an event of this batch's turn.
    pub(super) fn emit_turn(&self, kind: impl FnOnce() -> EventKind) {
        let place = || Where { turn: Some(self.turn), batch: Some(self.number), ..Where::default() };
        self.session.emit_lazily(kind, place);
    }

    /// The tool's name as events show it.
    pub(super) fn shown_name(&self, index: u32) -> Arc<str> {
        let slot = &self.slots[index as usize];
        if slot.known { slot.call.name.clone() } else { UNKNOWN_TOOL.into() }
    }

    /// Ends a call that has not started, from wherever it waits; `false` when it has started or ended.
    pub(super) fn end_unstarted(&self, index: u32, error: impl FnOnce() -> CallError) -> bool {
        let mut phase = self.slots[index as usize].phase();
        let asked = match &*phase {
            Phase::Started | Phase::Ended(_) => return false,
            Phase::Queued { ticket, .. } => {
                // Granted at this very moment: the permit finds the call ended and goes back.
                self.session.engine.admission.leave(*ticket);
                false
            }
            Phase::Asking { .. } => true,
            Phase::Waiting => false,
        };
        let error = error().not_started();
        if asked {
            let kind = error.kind;
            self.emit(index, None, || EventKind::ConfirmationResolved { approved: false, error: Some(kind) });
        }
        self.emit(index, None, || self.unstarted_event(index, &error));
        *phase = Phase::Ended(Ending::unstarted(error));
        drop(phase);
        self.ended(index, false);
        self.quiescent(index);
        true
    }

    fn unstarted_event(&self, index: u32, error: &CallError) -> EventKind {
        let failure = Failure::new(self.shown_name(index), error, 0, 0);
        match error.kind.terminal_event() {
            TerminalEvent::InputInvalid => EventKind::InputInvalid(failure),
            TerminalEvent::Denied => EventKind::Denied(failure),
            TerminalEvent::Failed => EventKind::Failed(failure),
        }
    }

    /// Ends a call that has started. Its permits have been given back, or go on with its handler.
    pub(crate) fn end_started(&self, index: u32, ending: Ending) {
        self.emit(index, None, || self.started_event(index, &ending));
        let ok = ending.status.is_ok();
        *self.slots[index as usize].phase() = Phase::Ended(ending);
        self.ended(index, ok);
    }

    /// Ends a call that has started, after the hook at its end (V1).
    pub(crate) async fn finish(&self, index: u32, ending: Ending) {
        let gate = &self.session.engine.gate;
        if gate.hooks.is_some() {
            let outcome = Box::new(self.slots[index as usize].outcome(ending.clone()));
            // Boxed: a call without hooks has no room for them in its task.
            Box::pin(gate.ended(&outcome, &self.caller())).await;
        }
        self.end_started(index, ending);
    }

    /// Emits streamed output, as long as the call has not ended.
    pub(crate) fn emit_delta(&self, index: u32, attempt: u32, text: &str) {
        let phase = self.slots[index as usize].phase();
        if matches!(*phase, Phase::Started) {
            self.emit(index, Some(attempt), || EventKind::OutputDelta { text: text.to_owned() });
        }
    }

    fn started_event(&self, index: u32, ending: &Ending) -> EventKind {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (queue_ms, duration_ms) = (millis(ending.queued), millis(ending.ran));
        let tool_name = self.shown_name(index);
        match &ending.status {
            Ok(output) => EventKind::Completed {
                tool_name,
                duration_ms,
                queue_ms,
                bytes: output.size(),
                dedupe: toolyard_core::Dedupe::Fresh,
                sandbox: ending.sandbox,
                cancel_requested: ending.cancel_requested,
            },
            Err(error) => EventKind::Failed(Failure::new(tool_name, error, queue_ms, duration_ms)),
        }
    }

    /// A call has its result. The last of the batch ends the turn; the last of a run wakes the driver.
    fn ended(&self, index: u32, ok: bool) {
        if !ok {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            let failed = self.failed.load(Ordering::Relaxed);
            self.emit_turn(|| EventKind::TurnEnded { ok: self.slots.len() - failed, failed });
        }
        let run = &self.runs[self.slots[index as usize].run as usize];
        if run.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.driver.wake();
        }
    }

    /// A call's handler has stopped and its permits are back.
    pub(crate) fn quiescent(&self, index: u32) {
        let run = &self.runs[self.slots[index as usize].run as usize];
        if run.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.driver.wake();
        }
    }

    /// Waits until every call of the run has its result.
    pub(super) async fn run_ended(&self, run: usize) {
        self.zero(&self.runs[run].open).await;
    }

    /// Waits until every call of the run is quiescent.
    pub(super) async fn run_quiescent(&self, run: usize) {
        self.zero(&self.runs[run].active).await;
    }

    /// Waits, as the one driver of this batch, until a count is zero.
    async fn zero(&self, count: &AtomicUsize) {
        poll_fn(|cx| {
            if count.load(Ordering::Acquire) == 0 {
                return Poll::Ready(());
            }
            self.driver.register(cx.waker());
            // It may have come to zero before the waker was in place.
            if count.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Asks for the permits of a call that is ready; starts it, puts it in line, or ends it.
    ///
    /// Gives the permit back to a caller that wants to start the call itself.
    pub(super) fn admit(self: &Arc<Self>, index: u32) -> Option<(Permit, Timing)> {
        match self.try_admit(index) {
            Ok(started) => started,
            Err(error) => {
                self.end_unstarted(index, || error);
                None
            }
        }
    }

    fn try_admit(self: &Arc<Self>, index: u32) -> Result<Option<(Permit, Timing)>, CallError> {
        let work = self.work(index);
        let engine = &self.session.engine;
        if work.entry.is_retired() {
            return Err(CallError::new(
                ErrorKind::NotFound,
                not_found(work.entry.name(), &engine.registry.table()),
            ));
        }
        admissible(engine.leases.get(work.class).state, work.class)?;
        let need = self.session.need(&work.entry, work.class);
        let ready_at = engine.clock.now();
        let mut phase = self.slots[index as usize].phase();
        if !matches!(*phase, Phase::Waiting) {
            return Ok(None); // stopped meanwhile
        }
        // The phase stays locked until the ticket is in it: whoever is granted at once waits for that.
        match engine.admission.admit(self.session.number, need, || (self.clone() as Arc<dyn Waiter>, index)) {
            Ok(Admitted::Now(permit)) => {
                *phase = Phase::Started;
                Ok(Some((permit, Timing { ready_at, granted_at: ready_at })))
            }
            Ok(Admitted::Waiting(ticket)) => {
                *phase = Phase::Queued { ticket, ready_at };
                Ok(None)
            }
            Err(full) => Err(CallError::new(
                ErrorKind::Overloaded,
                format!("the queue is full: {} calls wait already", full.queue_max),
            )),
        }
    }

    /// Starts a call on a task of its own.
    pub(super) fn spawn(self: &Arc<Self>, index: u32, permit: Permit, timing: Timing) {
        let engine = &self.session.engine;
        engine.tasks.spawn_on(attempt::run(self.clone(), index, permit, timing), &engine.runtime);
    }

    pub(super) fn withdraw_questions(&self) {
        let questions = std::mem::take(&mut *self.questions.lock().unwrap_or_else(PoisonError::into_inner));
        questions.iter().for_each(AbortHandle::abort);
    }

    /// Whether a serial call of this run ended without an output.
    pub(super) fn serial_failed(&self, run: usize) -> bool {
        let is_failed =
            |at: usize| matches!(&*self.slots[at].phase(), Phase::Ended(Ending { status: Err(_), .. }));
        let mut calls = self.calls_of(run);
        calls.any(|at| self.slots[at].routing.class() == Some(ToolClass::Serial) && is_failed(at))
    }

    /// The results there are by now, in the order of the calls.
    pub(crate) fn finished(&self) -> Vec<Option<Outcome>> {
        self.slots.iter().map(Slot::peek).collect()
    }

    /// Every result, in the order of the calls.
    pub(super) fn collect(&self) -> Vec<Outcome> {
        self.slots
            .iter()
            .map(|slot| slot.take().expect("every call of a batch that ended has a result"))
            .collect()
    }
}

/// Whether the pool takes calls.
fn admissible(state: PoolState, class: ToolClass) -> Result<(), CallError> {
    match state {
        PoolState::Running | PoolState::Paused => Ok(()),
        PoolState::Draining => Err(Stop::ShuttingDown.error()),
        PoolState::Failed => {
            let error = CallError::new(ErrorKind::Internal, format!("the {class} pool has failed"));
            Err(error.not_started())
        }
    }
}

impl Waiter for BatchState {
    fn start(self: Arc<Self>, index: u32, permit: Permit) {
        let granted_at = self.session.engine.clock.now();
        let mut phase = self.slots[index as usize].phase();
        let Phase::Queued { ready_at, .. } = *phase else {
            drop(phase);
            return drop(permit); // ended at this very moment
        };
        *phase = Phase::Started;
        drop(phase);
        self.clone().start_queued(index, permit, Timing { ready_at, granted_at });
    }
}

impl BatchState {
    fn start_queued(self: Arc<Self>, index: u32, permit: Permit, timing: Timing) {
        let work = self.work(index);
        if work.entry.is_retired() {
            // A tool that went while its call waited: the handler does not start.
            let table = self.session.engine.registry.table();
            let error = CallError::new(ErrorKind::NotFound, not_found(work.entry.name(), &table));
            drop(permit);
            *self.slots[index as usize].phase() = Phase::Waiting;
            self.end_unstarted(index, || error);
            return;
        }
        self.spawn(index, permit, timing);
    }
}

impl Drop for BatchState {
    fn drop(&mut self) {
        self.session.forget(self.number);
    }
}

/// The error of a call whose attempt vanished: its runtime was shut down under it (SC-3).
pub(crate) fn vanished() -> CallError {
    let mut error = CallError::new(ErrorKind::Internal, "the call's task was dropped before it ended");
    error.effect = Effect::Unknown;
    error.after_attempts(1)
}

/// The error of calls behind a run whose handlers do not stop (CL-3).
pub(super) fn behind_a_zombie() -> CallError {
    CallError::new(ErrorKind::QueueTimeout, "an earlier call of this batch was given up and still runs")
        .with_reason(Reason::Zombie)
}
