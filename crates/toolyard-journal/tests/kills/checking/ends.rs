//! After the last life every call has an end, and one that the rules allow.

use super::history::History;
use crate::{
    child::Order,
    plan::{Kind, Says, origin},
    tally::Tally,
    tools::done,
    working::json,
};
use toolyard::{CallError, Dedupe, ErrorKind, Reason};
use toolyard_journal::{CallRow, CallState, EndRow, Reader};

pub(super) fn check_ends(history: &History, order: &Order, tally: &mut Tally) {
    let reader = Reader::open(order.journal()).unwrap();
    let open = reader.open_turns().unwrap();
    tally.faults.extend(open.iter().map(|open| format!("still open: {open:?}")));
    for session in order.plan().sessions {
        for number in 1.. {
            let Some(turn) = reader.turn(&session.name, number).unwrap() else { break };
            for batch in &turn.batches {
                let mut is_behind_interrupted = false;
                for call in &batch.calls {
                    tally.counts.calls += 1;
                    if let Err(why) = check_call(history, call, is_behind_interrupted, tally) {
                        tally.faults.push(format!("{}: {why}", call.call.id));
                    }
                    is_behind_interrupted |= is_interrupted(call);
                }
            }
        }
    }
}

fn is_interrupted(call: &CallRow) -> bool {
    let error = |end: &EndRow| end.status.as_ref().err().map(|error| error.kind);
    matches!(&call.state, CallState::Ended(end) if error(end) == Some(ErrorKind::Interrupted))
}

fn check_call(
    history: &History,
    call: &CallRow,
    is_behind_interrupted: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    let CallState::Ended(end) = &call.state else {
        return Err(format!("it has no end: {:?}", call.state));
    };
    let id = call.call.id.as_str();
    let kind = history.kind_of(id).ok_or("nobody has sent it")?;
    tally.counts.reconciled += usize::from(end.dedupe == Dedupe::Reconciled);
    if let Some(given) = history.acks.get(id)
        && kind != Kind::Look
        && given.iter().any(|given| *given != json(&end.status))
    {
        tally.counts.lost += 1;
        return Err(format!("given was {given:?}, recorded is {}", json(&end.status)));
    }
    match &end.status {
        Ok(output) => {
            let text = output.to_text();
            let by = text.strip_prefix("did ").unwrap_or_default();
            let is_of_key =
                origin(by) == origin(id) && history.plan_of(id).is_some_and(|it| it.key.is_some());
            if text != done(by) || by != id && !is_of_key {
                return Err(format!("it says {text}"));
            }
            match history.has_effect(by) {
                true => Ok(()),
                false => Err("it has no effect".to_owned()),
            }
        }
        Err(error) => {
            tally.counts.interrupted += usize::from(error.kind == ErrorKind::Interrupted);
            match allows(history, (id, kind), call, error, is_behind_interrupted) {
                true => Ok(()),
                false => Err(format!("it ended {}", json(&end.status))),
            }
        }
    }
}

/// Whether a call may end so.
fn allows(
    history: &History,
    (id, kind): (&str, Kind),
    call: &CallRow,
    error: &CallError,
    is_behind_interrupted: bool,
) -> bool {
    let plan = history.plan_of(id);
    // A drain cancels what does not end in time, and what a handler has dispatched.
    let is_drained = history.has_drained;
    match error.kind {
        ErrorKind::ExecutionError => plan.is_some_and(|it| it.fails) && !history.has_effect(id),
        // It is not known of every tool whether it may be repeated.
        ErrorKind::Transient => plan.is_some_and(|it| it.harmless > 0) && !history.has_effect(id),
        ErrorKind::UserDenied => {
            let is_denied = plan.is_some_and(|it| it.says == Says::Deny);
            kind.asks() && is_denied && !history.starts.contains_key(id)
        }
        // It was attempted; or it has the result of the one whose key it has.
        ErrorKind::Interrupted => {
            let was_asked_often = kind.is_checked() && call.asked >= 3;
            let is_one = !kind.is_repeatable() && !kind.is_checked() || was_asked_often || id.contains('/');
            is_one && (error.attempts > 0 || plan.is_some_and(|it| it.key.is_some()) || id.contains('/'))
        }
        ErrorKind::Cancelled if error.reason == Some(Reason::PredecessorUnknown) => is_behind_interrupted,
        ErrorKind::Cancelled | ErrorKind::ShuttingDown => {
            history.cancelling.contains(origin(id))
                || history.cancelling.contains(id)
                || is_drained
                || id.contains('/')
                || shares_a_cancel(history, id, call)
        }
        _ => false,
    }
}

/// Whether a call has the end of another one of its key, which had been started before it was cancelled (ID-3: then nobody
/// is promoted; ID-6, JR-10: its end is kept, because another life does not know that it has changed nothing).
fn shares_a_cancel(history: &History, id: &str, call: &CallRow) -> bool {
    let is_shared = matches!(&call.state, CallState::Ended(end) if matches!(end.dedupe, Dedupe::Joined | Dedupe::Replayed));
    is_shared && history.cancelling.iter().any(|cancelled| origin(cancelled) == origin(id))
}
