//! Calls of a provider's toolset (Anthropic's `toolset_name`): in order, up to the first that fails.
//!
//! ```text
//!   calls    read read | click | click | read      toolset calls run alone, the others in runs between them
//!   result   ok   ok     error   skipped  ok       toolset calls after a failure are skipped
//! ```

use super::yard::{Played, Yard};
use crate::report::Timeline;
use std::collections::HashSet;
use toolyard::{Batch, Call, CallError, ErrorKind, Outcome, Reason, Routing, Session};
use toolyard_wire::{Format, Message};

/// Whether a message has calls of a toolset.
pub(super) fn is_in(message: &Message) -> bool {
    message.format() == Format::Anthropic && message.calls().iter().any(is_of_toolset)
}

/// Whether a call from Anthropic belongs to a toolset.
pub(super) fn is_of_toolset(call: &Call) -> bool {
    let fields = call.passthrough.as_ref();
    fields.and_then(|fields| fields.get("toolset_name")).is_some_and(|name| !name.is_null())
}

/// Runs the calls, those of a toolset one by one. `played` holds the calls that ran already, none of them a toolset's.
pub(super) async fn play(yard: &mut Yard, session: &Session, calls: &[Call], mut played: Played) -> Played {
    let twice = twice(session, calls);
    let mut failed = false;
    for piece in pieces(calls, &twice, played.outcomes.len()) {
        let first = &calls[played.outcomes.len()];
        let refusal = match &twice[played.outcomes.len()] {
            None if failed && is_of_toolset(first) => Some(skipped()),
            refusal => refusal.clone(),
        };
        let more = match refusal {
            Some(error) => unplayed(first, error),
            None => yard.play(session, piece).await,
        };
        failed |= is_of_toolset(first) && more.outcomes.iter().any(|outcome| !outcome.success());
        played.outcomes.extend(more.outcomes);
        played.timeline.append(more.timeline);
    }
    played
}

/// Splits the calls from `start` on into pieces that run as one batch each. Toolset calls and refused ones stand alone.
fn pieces<'a>(calls: &'a [Call], twice: &[Option<CallError>], mut start: usize) -> Vec<&'a [Call]> {
    let stands_alone = |at: usize| is_of_toolset(&calls[at]) || twice[at].is_some();
    let mut pieces = Vec::new();
    for at in start + 1..=calls.len() {
        if at == calls.len() || stands_alone(at) || stands_alone(at - 1) {
            pieces.push(&calls[start..at]);
            start = at;
        }
    }
    pieces
}

/// The refusals of calls whose id occurs earlier. The engine cannot detect them: it sees one piece at a time.
fn twice(session: &Session, calls: &[Call]) -> Vec<Option<CallError>> {
    let plan = session.plan(&Batch::new(calls.to_vec()));
    let mut ids = HashSet::new();
    let refusals = plan.calls.into_iter().map(|call| call.refusal);
    let of_call = |(call, refusal): (&'_ Call, Option<CallError>)| {
        let is_new = ids.insert(call.id.clone());
        refusal.filter(|_| !is_new)
    };
    calls.iter().zip(refusals).map(of_call).collect()
}

fn skipped() -> CallError {
    let message = "an earlier call of this toolset failed, so this one was skipped";
    CallError::new(ErrorKind::Cancelled, message).with_reason(Reason::Predecessor).not_started()
}

fn unplayed(call: &Call, error: CallError) -> Played {
    let outcomes = vec![Outcome::new(call, Routing::ShortCircuit, Err(error))];
    let timeline = Timeline::new(&outcomes, &Default::default());
    Played { outcomes, timeline }
}
