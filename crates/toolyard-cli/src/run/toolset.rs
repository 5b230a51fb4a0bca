//! Calls of a provider's toolset (Anthropic's `toolset_name`): in order, up to the first that fails.
//!
//! ```text
//!   calls    read read | click | click | read      toolset calls run alone, the others in runs between them
//!   result   ok   ok     error   skipped  ok       toolset calls after a failure are skipped
//! ```

use super::runner::{BatchResult, Runner};
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

/// Runs the calls, those of a toolset one by one. `result` holds the calls that ran already, none of them a toolset's.
pub(super) async fn run(
    runner: &Runner,
    session: &Session,
    calls: &[Call],
    mut result: BatchResult,
) -> BatchResult {
    let duplicates = duplicates(session, calls);
    let mut failed = false;
    for piece in pieces(calls, &duplicates, result.outcomes.len()) {
        let first = &calls[result.outcomes.len()];
        let refusal = match &duplicates[result.outcomes.len()] {
            None if failed && is_of_toolset(first) => Some(skipped()),
            refusal => refusal.clone(),
        };
        let more = match refusal {
            Some(error) => refused(first, error),
            None => runner.run_batch(session, piece).await,
        };
        failed |= is_of_toolset(first) && more.outcomes.iter().any(|outcome| !outcome.success());
        result.outcomes.extend(more.outcomes);
        result.timeline.append(more.timeline);
    }
    result
}

/// Splits the calls from `start` on into pieces that run as one batch each. Toolset calls and refused ones stand alone.
fn pieces<'a>(calls: &'a [Call], duplicates: &[Option<CallError>], mut start: usize) -> Vec<&'a [Call]> {
    let stands_alone = |at: usize| is_of_toolset(&calls[at]) || duplicates[at].is_some();
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
fn duplicates(session: &Session, calls: &[Call]) -> Vec<Option<CallError>> {
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

fn refused(call: &Call, error: CallError) -> BatchResult {
    let outcomes = vec![Outcome::new(call, Routing::ShortCircuit, Err(error))];
    let timeline = Timeline::new(&outcomes, &Default::default());
    BatchResult { outcomes, timeline }
}
