//! What the calls of a batch leave with the recorder, and what waits for it (SM-4).
//!
//! ```text
//!   session, forks, batch ──► the foundation: attempts wait for it
//!   call ends, has run ─────► it waits, before anybody is told   (`attempt/recorded.rs`, `leaving.rs`)
//!   call ends otherwise ────► the reply of its batch waits, unless a handler has dispatched it
//! ```

use crate::{
    call::{
        batch::BatchState,
        ending::{Ending, Recorded},
        in_flight::InFlight,
        records::BatchRecords,
    },
    record::{
        AttemptEnd, BatchRecord, CallPlace, Cancelled, EndRecord, Foundation, Pending, PushRecord, Recording,
    },
};
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_core::{Arguments, Call, CallError, ToolOutput};

/// How a batch has arrived.
pub(crate) enum Arrival<'a> {
    /// Whole.
    Whole { request: Option<Arc<str>>, is_sequential: bool, is_resend: bool, may_be_resumed: bool },
    /// From an earlier life of the engine, with the record that it was taken up.
    TakenUp { record: &'a Foundation },
    /// As the next calls of an open batch, whose own record this is.
    Pushed { open: &'a Foundation, may_be_resumed: bool },
}

impl BatchState {
    /// Gives the record of the batch, before anything of it starts.
    #[cold]
    pub(crate) fn record_arrival(
        &self,
        recording: &Recording,
        arrival: &Arrival<'_>,
        sent: &[(u32, Arguments)],
    ) {
        let session = &self.session;
        let (id, agent, turn, batch) = (&session.id, &session.path, self.turn, self.base.number);
        // They run again from here, through their layers: what is recorded is what these had to read.
        let sent: Vec<_> = sent.iter().map(|(at, arguments)| (*at, self.at(*at).sent(arguments))).collect();
        let mut calls: Vec<&Call> = self.slots.iter().map(|slot| &slot.call).collect();
        sent.iter().for_each(|(at, call)| calls[*at as usize] = call);
        let foundation = match arrival {
            Arrival::Whole { request, is_sequential, is_resend, .. } => {
                let record = BatchRecord {
                    session: id,
                    agent,
                    turn,
                    batch,
                    request: request.as_deref(),
                    parent: self.nested.as_ref().map(|nested| nested.call.at().call_place()),
                    calls,
                    is_open: false,
                    is_sequential: *is_sequential,
                    is_resend: *is_resend,
                };
                session.foundation().and(recording.give(|recorder| recorder.batch(&record)))
            }
            Arrival::TakenUp { record } => Foundation::clone(record),
            Arrival::Pushed { open, .. } => {
                let index = self.base.index;
                let record = PushRecord { session: id, agent, turn, batch, index, calls };
                open.and(recording.give(|recorder| recorder.pushed(&record)))
            }
        };
        let may_be_resumed = match arrival {
            Arrival::Whole { may_be_resumed, .. } | Arrival::Pushed { may_be_resumed, .. } => *may_be_resumed,
            // It had arrived before any drain of this life.
            Arrival::TakenUp { .. } => session.is_resumed(),
        };
        let records = BatchRecords::on(foundation, may_be_resumed, sent.is_empty());
        let _ = self.make_rare().records.set(records); // only once
    }

    /// Whether its calls that have not started can go on in another life of the engine, if this one ends: the recorder
    /// outlives it, their caller can resume their turn, and they had arrived before the drain began (SM-10).
    #[cold]
    pub(super) fn may_be_resumed(&self) -> bool {
        let recorder = self.session.engine.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.outlives_engine())
            && self.records().is_some_and(|records| records.may_be_resumed)
    }

    /// Whether what has not begun of it goes on in another life of the engine, because this one ends (SM-10). The pools are
    /// told of a drain one after the other, so a call may be suspended while others are still let through.
    pub(crate) fn is_left_to_another_life(&self) -> bool {
        self.session.engine.is_draining() && self.may_be_resumed()
    }

    /// What its attempts build on.
    pub(crate) fn foundation(&self) -> Foundation {
        self.records().map_or_else(Foundation::default, |records| records.foundation().clone())
    }

    /// Waits until what calls have left that ended where nothing could wait is durable, as long as a reply
    /// [does](crate::agent::Services::reply_until). What is not is marked in its result.
    pub(crate) async fn ends_recorded(&self, until: Option<Instant>) {
        let Some(records) = self.records() else { return };
        let engine = &self.session.engine;
        loop {
            let ends = records.take_ends();
            if ends.is_empty() {
                return;
            }
            for (index, pending) in ends {
                if !engine.recorded_for_reply(pending, until).await {
                    self.at(index).slot().life().mark_unrecorded();
                }
            }
        }
    }

    /// Notes that no result of the batch is certain to be known in another life of the engine.
    pub(crate) fn mark_unrecorded(&self) {
        self.slots.iter().for_each(|slot| slot.life().mark_unrecorded());
    }

    /// Gives the record that the caller of the batch has left before its end.
    #[cold]
    pub(crate) fn record_leaving(&self) {
        self.session.record_cancel(Cancelled::Batch(self.base.number));
    }
}

impl<'a> InFlight<'a> {
    /// Whether the arguments that run are the JSON that the record of the call has. Text is not: it was parsed since.
    pub(super) fn runs_as_sent(self) -> bool {
        matches!(self.call().arguments, Arguments::Json(_))
            && self.work().edit().is_none()
            && self.batch.records().is_some_and(|records| records.are_as_sent)
    }

    /// The call with the arguments that it was sent with.
    fn sent(self, arguments: &Arguments) -> Call {
        let mut call = self.call().clone();
        call.arguments = arguments.clone();
        call
    }

    /// Where the call is, as records name it.
    pub(crate) fn call_place(self) -> CallPlace<'a> {
        let (session, base) = (self.session(), &self.batch.base);
        CallPlace {
            session: &session.id,
            agent: &session.path,
            turn: self.batch.turn,
            batch: base.number,
            index: base.index + self.index,
            call_id: &self.call().id,
        }
    }

    /// A copy of how the call ends, if its record is still to be given. Made before the end is out of hand.
    #[cold]
    #[inline(never)]
    pub(super) fn to_be_recorded(self, ending: &mut Ending) -> Option<Box<Ending>> {
        if ending.is_suspended() {
            // It has no end to record: it goes on in another life of the engine (SM-10).
            self.wait_for_foundation();
            return None;
        }
        let is_open = ending.recorded == Recorded::NotYet;
        is_open.then(|| {
            ending.recorded = Recorded::Given;
            Box::new(ending.clone())
        })
    }

    /// Makes the reply wait until what a suspended call goes on from is durable.
    fn wait_for_foundation(self) {
        if let Some(records) = self.batch.records()
            && let Some(pending) = records.foundation().clone().pending()
        {
            records.add_end(self.index, pending);
        }
    }

    /// Gives the record of an end for which nothing can wait here: the reply of the batch does. No lock is held.
    #[cold]
    #[inline(never)]
    pub(super) fn record_for_reply(self, ending: &Ending) {
        let pending = self.give_end(ending);
        if let (Some(pending), Some(records)) = (pending, self.batch.records()) {
            records.add_end(self.index, pending);
        }
    }

    /// Gives the record of the call's end; `None` if nothing has to wait for it.
    pub(super) fn give_end(self, ending: &Ending) -> Option<Pending> {
        let recording = self.engine().recorder.as_ref()?;
        let slot = self.slot();
        let record = EndRecord {
            call: self.call_place(),
            tool: self.cleared().map(|work| work.entry.spec()),
            key: self.idempotency_key(),
            status: shown(&ending.status),
            attempts: ending.attempts,
            dedupe: ending.dedupe,
            routing: slot.routing,
            run: slot.run,
            sandbox: ending.sandbox,
            cancel_requested: ending.cancel_requested,
            queued: ending.queued.into(),
            ran: ending.ran.into(),
        };
        recording.give(|recorder| recorder.ended(&record))
    }

    /// Gives the record of an attempt that has ended and is not the end of its call.
    pub(super) fn give_attempt_end(
        self,
        attempt: u32,
        status: &Result<ToolOutput, Box<CallError>>,
        is_retried: bool,
    ) -> Option<Pending> {
        let recording = self.engine().recorder.as_ref()?;
        let (tool, key) = (self.work().entry.spec(), self.idempotency_key());
        if !recording.needs_attempts(tool, key) {
            return None;
        }
        let record =
            AttemptEnd { call: self.call_place(), attempt, tool, key, status: shown(status), is_retried };
        recording.give(|recorder| recorder.attempt_ended(&record))
    }
}

/// A result as records show it.
fn shown(status: &Result<ToolOutput, Box<CallError>>) -> Result<&ToolOutput, &CallError> {
    status.as_ref().map_err(Box::as_ref)
}
