//! The order in which the events of one call may come (OB-1), as a state machine.

use super::EventKind;
use crate::{Dedupe, ErrorKind};

/// The state of a call, according to its events so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    New,
    Received,
    Asked,
    Answered { approved: bool },
    Called,
    Attempting,
    Retrying,
    Ended,
    Suspended,
    Late,
}

/// The error for an event that is out of order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{event}' is not allowed for a call that {place}")]
pub struct GrammarError {
    /// The name of the event.
    pub event: &'static str,
    place: &'static str,
}

/// Checks the order of one call's events.
///
/// # Examples
/// ```
/// use toolyard_core::EventKind;
/// use toolyard_core::event::CallGrammar;
/// let mut grammar = CallGrammar::default();
/// assert!(grammar.next(&EventKind::Attempt).is_err()); // nothing was received
/// ```
#[derive(Debug, Clone)]
pub struct CallGrammar {
    state: CallState,
}

impl Default for CallGrammar {
    fn default() -> Self {
        Self { state: CallState::New }
    }
}

impl CallGrammar {
    /// Reads the next event of the call.
    ///
    /// # Errors
    /// [`GrammarError`] if the event is out of order; the state then stays as it was.
    pub fn next(&mut self, event: &EventKind) -> Result<(), GrammarError> {
        match step(self.state, event) {
            Some(next) => {
                self.state = next;
                Ok(())
            }
            None => Err(GrammarError { event: event.name(), place: place(self.state) }),
        }
    }

    /// Whether the call has ended, or was suspended (SM-10).
    pub fn is_ended(&self) -> bool {
        matches!(self.state, CallState::Ended | CallState::Suspended | CallState::Late)
    }
}

fn step(state: CallState, event: &EventKind) -> Option<CallState> {
    use CallState as S;
    use EventKind as E;
    Some(match (state, event) {
        (S::New, E::Received { .. }) => S::Received,
        (S::Received, E::InputInvalid(_) | E::Denied(_) | E::Failed(_)) => S::Ended,
        // Every caller is asked for approval before its key is looked up.
        (
            S::Received | S::Answered { approved: true },
            E::Completed { dedupe: Dedupe::Joined | Dedupe::Replayed | Dedupe::Reconciled, .. },
        ) => S::Ended,
        // An earlier life of the engine has started it.
        (S::Received | S::Answered { approved: true }, E::Retry { code: ErrorKind::Interrupted, .. }) => {
            state
        }
        (S::Received, E::ConfirmationRequested(_)) => S::Asked,
        (S::Asked, E::ConfirmationResolved(it)) => S::Answered { approved: it.approved },
        (S::Answered { .. }, E::Denied(_) | E::Failed(_)) => S::Ended,
        (S::Answered { approved: true } | S::Received, E::Called { .. }) => S::Called,
        (S::Called | S::Retrying, E::Attempt) => S::Attempting,
        (S::Attempting, E::OutputDelta { .. }) => S::Attempting,
        (S::Attempting, E::Retry { .. }) => S::Retrying,
        (S::Attempting, E::Completed { .. }) => S::Ended,
        (S::Attempting | S::Retrying, E::Failed(_)) => S::Ended,
        // A question that is open stays open.
        (S::Received | S::Asked | S::Answered { approved: true }, E::Suspended { .. }) => S::Suspended,
        (S::Ended, E::LateResult { .. }) => S::Late,
        _ => return None,
    })
}

const fn place(state: CallState) -> &'static str {
    match state {
        CallState::New => "was not received",
        CallState::Received => "was received",
        CallState::Asked => "waits for an answer",
        CallState::Answered { approved: true } => "was approved",
        CallState::Answered { approved: false } => "was refused",
        CallState::Called => "was called",
        CallState::Attempting => "is in an attempt",
        CallState::Retrying => "waits for its next attempt",
        CallState::Ended => "has ended",
        CallState::Suspended => "was suspended",
        CallState::Late => "has ended and had its late result",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CallError, Sandbox, SideEffects, ToolClass,
        event::{ConfirmationRequest, ConfirmationResolution, Failure},
    };

    fn resolved(approved: bool) -> EventKind {
        let (decision, who, reason) = (None, None, None);
        EventKind::ConfirmationResolved(Box::new(ConfirmationResolution {
            approved,
            decision,
            who,
            reason,
            error: None,
            by: None,
            digest: None,
            input_summary: None,
            projected_modifications: Vec::new(),
        }))
    }

    fn kind(name: &str) -> EventKind {
        let tool_name: std::sync::Arc<str> = "t".into();
        let failure = || Failure::new("t".into(), &CallError::new(ErrorKind::Internal, "x"), 0, 0);
        match name {
            "received" => EventKind::Received { tool_name, bytes: 0, digest: None },
            "invalid" => EventKind::InputInvalid(failure()),
            "denied" => EventKind::Denied(failure()),
            "failed" => EventKind::Failed(failure()),
            "asked" => EventKind::ConfirmationRequested(Box::new(ConfirmationRequest {
                tool_name,
                side_effects: SideEffects::Write,
                expires_ms: 1,
                request: crate::RequestId::new(5, 1, 9),
                digest: crate::CallDigest::of_text("t", "{}", &crate::SessionId::from("s")),
                input_summary: "{}".to_owned(),
                projected_modifications: Vec::new(),
                shares: None,
            })),
            "yes" => resolved(true),
            "no" => resolved(false),
            "called" => EventKind::Called {
                tool_name,
                side_effects: SideEffects::Read,
                class: ToolClass::Read,
                queue_ms: 0,
                policy_version: 1,
                approval: None,
                digest: None,
                edited: false,
            },
            "attempt" => EventKind::Attempt,
            "delta" => EventKind::OutputDelta { text: String::new() },
            "retry" => EventKind::Retry { delay_ms: 0, code: ErrorKind::Transient },
            "late" => EventKind::LateResult { ok: true },
            "suspended" => EventKind::Suspended { tool_name },
            "done" | "joined" => EventKind::Completed {
                tool_name,
                duration_ms: 0,
                queue_ms: 0,
                bytes: 0,
                dedupe: if name == "done" { Dedupe::Fresh } else { Dedupe::Joined },
                sandbox: Sandbox::Host,
                cancel_requested: false,
                edited: false,
                details: None,
            },
            other => panic!("no such event: {other}"),
        }
    }

    /// Reads events up to the first error. Returns how many are left, and whether the call has ended.
    fn read(events: &str) -> (usize, bool) {
        let mut grammar = CallGrammar::default();
        let events: Vec<_> = events.split_whitespace().map(kind).collect();
        let read = events.iter().take_while(|event| grammar.next(event).is_ok()).count();
        (events.len() - read, grammar.is_ended())
    }

    /// OB-1: orders that the grammar allows.
    #[test]
    fn whole_lives_are_accepted() {
        for life in [
            "received invalid",
            "received denied",
            "received failed",
            "received joined",
            "received called attempt done",
            "received called attempt delta delta failed late",
            "received called attempt retry attempt done",
            "received called attempt retry failed",
            "received asked yes called attempt done",
            "received asked no denied",
            "received asked yes failed",
            "received asked yes joined",
            "received suspended",
            "received asked suspended",
            "received asked yes suspended",
        ] {
            assert_eq!(read(life), (0, true), "{life}");
        }
    }

    /// OB-1: orders that it does not.
    #[test]
    fn events_out_of_order_are_refused() {
        for life in [
            "called",
            "received attempt",
            "received done",
            "received called done",
            "received called attempt done done",
            "received called attempt done failed",
            "received called attempt attempt",
            "received asked no called",
            "received asked no joined",
            "received asked called",
            "received late",
            "received failed late late",
            "received asked no suspended",
            "received called attempt suspended",
            "received suspended late",
            "received suspended failed",
        ] {
            assert_ne!(read(life).0, 0, "{life}");
        }
    }
}
