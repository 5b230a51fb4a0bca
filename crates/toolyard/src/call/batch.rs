//! The state that a batch's driver, attempts and approvals share.

use crate::{
    budget::Allowance,
    call::{
        allowances::BatchAllowances,
        batch_ends::Ends,
        batch_rare::BatchRare,
        before::Before,
        driver_waker::DriverWaker,
        ending::Ending,
        holding::Holding,
        in_flight::{CallRef, InFlight},
        life::Started,
        nested::Nested,
        rare::Rare,
        records::BatchRecords,
        run::{Run, index},
        session::SessionCore,
        slot::{Cleared, Slot},
        stop::Stop,
    },
    record::Parent,
};
use futures::{channel::mpsc, future::AbortHandle};
use once_cell::race::OnceBox;
use serde_json::Value;
use smallvec::SmallVec;
use std::{
    borrow::Cow,
    ops::Range,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use toolyard_admission::{Ask, Need};
use toolyard_core::{Arguments, Call, Caller, Outcome, Routing, ToolClass};

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
    pub(super) allowances: BatchAllowances,
    /// Whether it is its whole turn: then its start and end are the turn's.
    pub(super) is_turn: bool,
    pub(crate) base: Base,
    /// The span it was dispatched in.
    pub(crate) parent: Parent,
    /// Fires when running calls are to stop. Created on demand: most batches never need it.
    pub(crate) cancel: OnceLock<CancellationToken>,
    pub(crate) cancelled: AtomicBool,
    pub(crate) slots: Box<[Slot]>,
    pub(crate) stopped: OnceLock<Stop>,
    /// Most batches have few runs, which then need no allocation.
    pub(crate) runs: SmallVec<[Run; 2]>,
    /// How many runs have a call without a result; not maintained for a single run.
    open_runs: AtomicUsize,
    pub(crate) failed: AtomicUsize,
    /// Whether the end of the batch has been announced. True from the start if nobody listens.
    end_announced: AtomicBool,
    pub(crate) driver: DriverWaker,
    /// The memory of its results.
    pub(crate) holding: Holding,
    rare: OnceBox<BatchRare<CallRef>>,
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
        let entries = slots.iter().filter_map(|slot| Some(&slot.work.as_ref()?.entry));
        let allowances = BatchAllowances::of(&session, turn.allowance, entries);
        let hears = session.engine.bus.is_listening() || parent.is_some();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            end_announced: AtomicBool::new(slots.is_empty() || !hears),
            base,
            session,
            nested,
            parent,
            turn: turn.number,
            allowances,
            is_turn: turn.is_whole,
            cancel: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            stopped: OnceLock::new(),
            open_runs: AtomicUsize::new(runs.len()),
            runs,
            failed: AtomicUsize::new(0),
            slots: slots.into_boxed_slice(),
            driver: DriverWaker::default(),
            holding,
            rare: OnceBox::new(),
        })
    }

    /// Tells somebody of each call's end. No call can have ended yet.
    pub(crate) fn told_to(&self, ends: mpsc::UnboundedSender<CallRef>) {
        let _ = self.make_rare().ends.set(ends); // only once
    }

    /// Goes on from what an earlier life of the engine has done for its calls. Nothing of it can have begun yet.
    pub(crate) fn goes_on_from(&self, before: Box<[Before]>) {
        let _ = self.make_rare().before.set(before); // only once
    }

    /// Its [`BatchRare`], created if it has none yet.
    pub(super) fn make_rare(&self) -> &BatchRare<CallRef> {
        self.rare.get_or_init(Box::default)
    }

    pub(super) fn rare(&self) -> Option<&BatchRare<CallRef>> {
        self.rare.get()
    }

    /// What it has left with the recorder, if there is one.
    #[inline]
    pub(super) fn records(&self) -> Option<&BatchRecords> {
        self.rare()?.records.get()
    }

    /// Withdraws its questions. Whoever adds one looks afterwards whether the batch was stopped: it takes the lock for that,
    /// and so does this, which therefore makes it.
    pub(crate) fn withdraw_questions(&self) {
        let questions = std::mem::take(&mut *self.make_rare().questions.lock());
        questions.values().for_each(AbortHandle::abort);
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

    /// Announces the end of the batch: every call has its result.
    pub(crate) fn announce_end(&self) {
        self.announce_turn_end(self.failed());
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

    /// The number of the batch in its session.
    pub(crate) fn number(&self) -> u64 {
        self.base.number
    }

    /// The places of the calls with this id, in call order.
    pub(crate) fn places_of(&self, id: &str) -> &[u32] {
        let id_at = |place: u32| self.at(place).slot().id().as_str();
        let sorted = self.make_rare().ids.0.get_or_init(|| {
            let mut places: Box<[u32]> = (0..index(self.slots.len())).collect();
            places.sort_by(|one, other| id_at(*one).cmp(id_at(*other)));
            places
        });
        let from = &sorted[sorted.partition_point(|place| id_at(*place) < id)..];
        // Ids hardly ever repeat, so the end is near.
        let count = from.iter().take_while(|place| id_at(**place) == id).count();
        &from[..count]
    }

    /// Whether a serial call of this run ended without an output.
    pub(crate) fn serial_failed(&self, run: usize) -> bool {
        let mut calls = self.calls_of(run).map(|at| &self.slots[at]);
        let is_failed = |slot: &Slot| {
            slot.life().ending().is_some_and(|ending| ending.status.is_err() && !ending.is_suspended())
        };
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

    /// The call's idempotency key: its own, or the one that its tool derives (KT-16).
    pub(crate) fn idempotency_key(self) -> Option<&'a str> {
        let own = self.call().idempotency_key.as_deref();
        own.or_else(|| self.cleared()?.key().map(|key| &**key.name.key()))
    }

    /// The arguments that run, of a call that the gate let through.
    pub(crate) fn args(self) -> &'a Arc<Value> {
        self.work().args(self.call())
    }

    /// The arguments that run, without secrets, if the person who approved the call changed them (SM-5).
    #[inline(always)]
    pub(crate) fn edited(self) -> Option<Arc<Value>> {
        self.cleared()?.edit().map(|edit| edit.shown.clone())
    }

    /// The call with the arguments that run.
    pub(crate) fn call_as_run(self) -> Cow<'a, Call> {
        match self.cleared().and_then(Cleared::edit) {
            None => Cow::Borrowed(self.call()),
            Some(edit) => {
                let mut call = self.call().clone();
                call.arguments = Arguments::Json(edit.args.clone());
                Cow::Owned(call)
            }
        }
    }

    /// Whether the call names a tool that the engine has.
    pub(crate) fn is_known(self) -> bool {
        self.slot().known
    }

    /// Whether a call has ended while the flight in its slot goes on.
    pub(crate) fn is_detached(self) -> bool {
        self.slot().rare().is_some_and(Rare::is_detached)
    }

    /// The call's outcome as its caller will see it.
    pub(crate) fn outcome(self, ending: Ending) -> Outcome {
        let mut outcome = self.slot().outcome(ending);
        BatchState::redact(self.engine().results_redactor.as_ref(), [&mut outcome]);
        outcome
    }

    /// Withdraws the question about one call.
    pub(crate) fn withdraw_question(self) {
        let question = self.batch.make_rare().questions.lock().remove(&self.index);
        question.iter().for_each(AbortHandle::abort); // outside of the lock, because it wakes a task
    }
}

impl Ends for BatchState {
    /// Whether some call has no result yet, the end of the batch is still to be announced, a handler goes on for calls
    /// of other batches, or for none any more, or somebody has answered and is still to be told what became of that.
    fn is_in_flight(&self) -> bool {
        let goes_on = |slot: &Slot| slot.rare().is_some_and(Rare::has_detached_run);
        self.is_open()
            || !self.end_announced.load(Ordering::SeqCst)
            || self.slots.iter().any(goes_on)
            || self.records().is_some_and(|records| records.has_answers())
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
