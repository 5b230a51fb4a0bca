//! Results that calls have before their run begins: refused, replayed, or of an earlier life of the engine.

use crate::{
    call::{BatchState, Ending, Slot, Step, index},
    keys::{Kept, RetainedResult},
    tool::Table,
};
use std::sync::Arc;
use toolyard_core::{Call, CallError, Outcome, Routing, ToolClass};

/// A result that a call has before its run begins.
pub(super) enum EarlyResult {
    Refused(CallError),
    /// It may run, but not at present, or not under its key.
    Answered(ToolClass, CallError),
    /// The turn has answered this very call before (CL-8).
    Replayed(Outcome),
    /// A result is kept under its key (ID-6).
    Retained(ToolClass, Arc<Kept<RetainedResult>>),
    /// It has ended in an earlier life of the engine, or when it was taken up.
    Before {
        outcome: Box<Outcome>,
        is_unknown: bool,
    },
}

impl EarlyResult {
    pub(super) fn routing(&self) -> Routing {
        match self {
            Self::Refused(_) => Routing::ShortCircuit,
            Self::Answered(class, _) | Self::Retained(class, _) => (*class).into(),
            Self::Replayed(outcome) => outcome.routing,
            Self::Before { outcome, .. } => outcome.routing,
        }
    }
}

impl From<CallError> for EarlyResult {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

/// A call that has its result already, which is noted.
#[cold]
#[inline(never)]
pub(super) fn not_run(
    call: Call,
    at: u32,
    result: EarlyResult,
    tools: &Table,
    early: &mut Vec<(u32, EarlyResult)>,
) -> Slot {
    let slot = match &result {
        EarlyResult::Refused(_) => {
            let known = tools.contains_key(&call.name);
            Slot::refused(call, known)
        }
        EarlyResult::Before { outcome, .. } => {
            let known = tools.contains_key(&call.name);
            let mut slot = Slot::answered(call, outcome.routing);
            slot.known = known;
            slot
        }
        other => Slot::answered(call, other.routing()),
    };
    early.push((at, result));
    slot
}

/// Announces the calls, and ends those that have their result already.
pub(super) fn announce(batch: &Arc<BatchState>, early: Vec<(u32, EarlyResult)>) {
    if early.is_empty() && !batch.session.engine.bus.is_listening() {
        return; // the usual case
    }
    if batch.slots.is_empty() {
        batch.announce_start();
        return batch.announce_turn_end(0);
    }
    if early.is_empty() {
        return batch.announce_all();
    }
    batch.announce_start();
    let mut early = early.into_iter().peekable();
    for index in 0..index(batch.slots.len()) {
        let call = batch.at(index);
        call.emit(None, || call.received(call.recorded_name()));
        match early.next_if(|(at, _)| *at == index) {
            None => {}
            Some((_, EarlyResult::Refused(error) | EarlyResult::Answered(_, error))) => {
                call.refuse(|| error);
            }
            Some((_, EarlyResult::Replayed(outcome))) => {
                call.share(call.slot().life(), Ending::replayed(outcome), Step::EndedAndQuiescent)
            }
            Some((_, EarlyResult::Retained(_, retained))) => {
                call.share(call.slot().life(), Ending::retained(&retained), Step::EndedAndQuiescent)
            }
            Some((_, EarlyResult::Before { outcome, .. })) => {
                call.share(call.slot().life(), Ending::of_outcome(*outcome), Step::EndedAndQuiescent)
            }
        }
    }
}
