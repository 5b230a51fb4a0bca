//! What a batch's driver, attempts and approvals share.

use super::ledger::{Ending, Phase, Slot};
use super::stop::Stop;
use crate::{
    admission::{Admitted, Permit, QueueFull, Waiter},
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
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use toolyard_core::{
    AgentPath, Call, CallError, CallScope, Caller, Effect, ErrorKind, EventKind, Outcome, Reason, Resources,
    SessionId, ToolClass, error::TerminalEvent, event::Failure,
};

/// The name of a tool that no registry has, in events (OB-4).
const UNKNOWN_TOOL: &str = "_unknown";

/// Ends a call that has not started should the task that leads it there vanish (SC-3).
pub(super) struct OrEnd {
    batch: Arc<BatchState>,
    index: u32,
    armed: bool,
}

impl OrEnd {
    pub(super) fn new(batch: &Arc<BatchState>, index: u32) -> Self {
        Self { batch: batch.clone(), index, armed: true }
    }

    /// The call goes on by itself.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for OrEnd {
    fn drop(&mut self) {
        if self.armed {
            self.batch.end_unstarted(self.index, vanished);
        }
    }
}

/// A place in a batch, as small as its bound allows.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a batch is far smaller than 2^32")
}

/// A run of the batch.
pub(super) struct Run {
    calls: Range<usize>,
    /// Calls without a result.
    open: AtomicUsize,
    /// Calls that are not quiescent: no result, or a handler that goes on behind it (V2).
    active: AtomicUsize,
}

impl Run {
    pub(super) fn new(calls: Range<usize>) -> Self {
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
    /// Fires when running calls are to stop; made when somebody asks for it, which most batches see nobody do.
    cancel: OnceLock<CancellationToken>,
    cancelled: AtomicBool,
    pub(super) slots: Box<[Slot]>,
    pub(super) stopped: OnceLock<Stop>,
    /// Questions to the approver that are in the air; a batch that stops withdraws them.
    pub(super) questions: Mutex<Vec<AbortHandle>>,
    runs: Vec<Run>,
    open: AtomicUsize,
    failed: AtomicUsize,
    driver: AtomicWaker,
}

impl BatchState {
    pub(super) fn new(
        session: Arc<SessionCore>,
        turn: u64,
        mut slots: Vec<Slot>,
        runs: Vec<Run>,
    ) -> Arc<Self> {
        for (number, run) in runs.iter().enumerate() {
            slots[run.calls.clone()].iter_mut().for_each(|slot| slot.run = index(number));
        }
        if !slots.is_empty() {
            session.engine.in_air.begin();
        }
        Arc::new(Self {
            number: session.next_batch(),
            session,
            turn,
            cancel: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            stopped: OnceLock::new(),
            questions: Mutex::new(Vec::new()),
            runs,
            open: AtomicUsize::new(slots.len()),
            failed: AtomicUsize::new(0),
            slots: slots.into_boxed_slice(),
            driver: AtomicWaker::new(),
        })
    }

    /// Tells running calls to stop.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(token) = self.cancel.get() {
            token.cancel();
        }
    }

    /// Why running calls have been told to stop, if they have.
    pub(crate) fn cancelled(&self) -> Option<Stop> {
        let told = self.cancelled.load(Ordering::SeqCst);
        told.then(|| self.stopped.get().copied().unwrap_or(Stop::Cancelled))
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

    /// What the gate made of a call; `None` for one that does not go.
    pub(super) fn cleared(&self, index: u32) -> Option<&Cleared> {
        self.slots[index as usize].work.as_ref()
    }

    pub(crate) fn work(&self, index: u32) -> &Cleared {
        self.cleared(index).expect("only calls that the gate let through are admitted")
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
        let phase = self.slots[index as usize].phase();
        match &*phase {
            Phase::Started | Phase::Ended(_) | Phase::Taken => return false,
            Phase::Queued { ticket, .. } => {
                // Granted at this very moment: the permit finds the call ended and goes back.
                self.session.engine.admission.leave(*ticket);
            }
            Phase::Asking { .. } | Phase::Waiting => {}
        }
        self.end_waiting(phase, index, error());
        true
    }

    /// Ends a call that waits, whose phase the caller has looked at.
    fn end_waiting(&self, mut phase: MutexGuard<'_, Phase>, index: u32, error: CallError) {
        let error = error.not_started();
        if matches!(*phase, Phase::Asking { .. }) {
            let kind = error.kind;
            self.emit(index, None, || EventKind::ConfirmationResolved { approved: false, error: Some(kind) });
        }
        self.emit(index, None, || self.unstarted_event(index, &error));
        *phase = Phase::Ended(Ending::unstarted(error));
        drop(phase);
        self.ended(index, false);
        self.quiescent(index);
    }

    /// Ends a call with the result that this turn gave it before.
    pub(super) fn end_replayed(&self, index: u32, outcome: Outcome) {
        self.end_started(index, Ending::replayed(outcome));
        self.quiescent(index);
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
        let ok = ending.status.is_ok();
        // Under the lock, so that nothing the handler still streams comes after its end.
        let mut phase = self.slots[index as usize].phase();
        self.emit(index, None, || self.started_event(index, &ending));
        *phase = Phase::Ended(ending);
        drop(phase);
        self.ended(index, ok);
    }

    /// A call and its end as the caller will see them.
    pub(crate) fn outcome(&self, index: u32, ending: Ending) -> Outcome {
        self.slots[index as usize].outcome(ending)
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
                dedupe: ending.dedupe,
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
            self.session.engine.in_air.end();
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

    /// Whether a call may go now that its run has begun. One that is asked about goes when it is approved; one
    /// that has its result is done.
    pub(super) fn may_go(&self, index: u32) -> bool {
        may_go(&mut self.slots[index as usize].phase())
    }

    /// Asks for the permits of a call that is ready; gives them, or puts the call in line, or ends it.
    pub(super) fn admit(self: &Arc<Self>, index: u32, ready_at: Instant) -> Option<(Permit, Timing)> {
        let mut phase = self.slots[index as usize].phase();
        if !may_go(&mut phase) {
            return None;
        }
        let engine = &self.session.engine;
        let work = self.work(index);
        if let Err(error) =
            self.check_tool(work).and_then(|()| admissible(engine.leases.get(work.class).state, work.class))
        {
            self.end_waiting(phase, index, error);
            return None;
        }
        let need = self.session.need(&work.entry, work.class);
        // The phase stays locked until the ticket is in it: whoever is granted at once waits for that.
        match engine.admission.admit(self.session.number, need, || (self.clone() as Arc<dyn Waiter>, index)) {
            Ok(Admitted::Now(permit)) => {
                *phase = Phase::Started;
                Some((permit, Timing { ready_at, granted_at: ready_at }))
            }
            Ok(Admitted::Waiting(ticket)) => {
                *phase = Phase::Queued { ticket, ready_at };
                None
            }
            Err(QueueFull { queue_max }) => {
                let message = format!("the queue is full: {queue_max} calls wait already");
                self.end_waiting(phase, index, CallError::new(ErrorKind::Overloaded, message));
                None
            }
        }
    }

    /// Whether the call's tool is still there.
    fn check_tool(&self, work: &Cleared) -> Result<(), CallError> {
        if !work.entry.is_retired() {
            return Ok(());
        }
        let table = self.session.engine.registry.table();
        Err(CallError::new(ErrorKind::NotFound, not_found(work.entry.name(), &table)))
    }

    /// Starts a call on a task of its own.
    pub(super) fn spawn(self: &Arc<Self>, index: u32, permit: Permit, timing: Timing) {
        let engine = &self.session.engine;
        engine.runtime.spawn(attempt::run(self.clone(), index, permit, timing));
    }

    pub(super) fn withdraw_questions(&self) {
        let questions = std::mem::take(&mut *self.questions.lock().unwrap_or_else(PoisonError::into_inner));
        questions.iter().for_each(AbortHandle::abort);
    }

    /// Whether a serial call of this run ended without an output.
    pub(super) fn serial_failed(&self, run: usize) -> bool {
        let mut calls = self.calls_of(run).map(|at| &self.slots[at]);
        let is_failed = |slot: &Slot| matches!(&*slot.phase(), Phase::Ended(Ending { status: Err(_), .. }));
        calls.any(|slot| slot.routing.class() == Some(ToolClass::Serial) && is_failed(slot))
    }

    /// Every result, in the order of the calls; handed over, or copied where the turn keeps them.
    pub(super) fn collect(&self, keep: bool) -> Vec<Outcome> {
        let result = |slot: &Slot| if keep { slot.peek() } else { slot.take() };
        let all = self.slots.iter().map(result);
        all.map(|outcome| outcome.expect("every call of a batch that ended has a result")).collect()
    }

    /// The results there are by now, one place per call.
    pub(crate) fn finished(&self) -> Vec<Option<Outcome>> {
        self.slots.iter().map(Slot::peek).collect()
    }

    /// The result of this very call, if its handler has run for it.
    pub(crate) fn answer(&self, call: &Call) -> Option<Outcome> {
        let same = |slot: &&Slot| {
            slot.call.id == call.id && slot.call.name == call.name && slot.call.arguments == call.arguments
        };
        let slot = self.slots.iter().find(same)?;
        slot.peek().filter(|outcome| outcome.attempts > 0)
    }
}

/// Whether a call in this phase may go; one that is asked about is marked to go when it is approved.
fn may_go(phase: &mut Phase) -> bool {
    match phase {
        Phase::Waiting => true,
        Phase::Asking { run_begun } => {
            *run_begun = true;
            false
        }
        Phase::Queued { .. } | Phase::Started | Phase::Ended(_) | Phase::Taken => false,
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

impl CallScope for BatchState {
    fn session(&self) -> &SessionId {
        &self.session.id
    }

    fn agent(&self) -> &AgentPath {
        &self.session.agent
    }

    fn turn(&self) -> u64 {
        self.turn
    }

    fn batch(&self) -> u64 {
        self.number
    }

    fn call(&self, index: u32) -> &Call {
        self.call(index)
    }

    fn resources(&self) -> &Resources {
        &self.session.resources
    }

    fn cancel_token(&self) -> &CancellationToken {
        let token = self.cancel.get_or_init(CancellationToken::new);
        // Told to stop before there was a token to fire.
        if self.cancelled.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }

    /// Streamed output counts as long as its call has not ended.
    fn output_delta(&self, index: u32, attempt: u32, text: &str) {
        let phase = self.slots[index as usize].phase();
        if matches!(*phase, Phase::Started) {
            self.emit(index, Some(attempt), || EventKind::OutputDelta { text: text.to_owned() });
        }
    }
}

impl Waiter for BatchState {
    fn start(self: Arc<Self>, index: u32, permit: Permit) {
        let engine = &self.session.engine;
        let granted_at = engine.clock.now();
        let mut phase = self.slots[index as usize].phase();
        let Phase::Queued { ready_at, .. } = *phase else {
            drop(phase);
            return drop(permit); // ended at this very moment
        };
        if let Err(gone) = self.check_tool(self.work(index)) {
            self.end_waiting(phase, index, gone);
            return drop(permit);
        }
        *phase = Phase::Started;
        drop(phase);
        self.spawn(index, permit, Timing { ready_at, granted_at });
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
