//! The story of one call: who made it, what it called, why it was allowed to run, and how it ended.

use std::sync::Arc;
use toolyard::{
    AgentPath, CallDigest, CallId, Dedupe, ErrorKind, Event, EventKind, RequestId, SessionId,
    event::{Approval, Failure, SettledBy},
};

/// One call, put together from its events.
#[derive(Debug)]
pub(super) struct Story {
    /// The line of its first event.
    pub(super) line: usize,
    pub(super) wall_ms: u64,
    pub(super) session: SessionId,
    pub(super) agent: AgentPath,
    pub(super) turn: Option<u64>,
    pub(super) batch: Option<u64>,
    pub(super) index: Option<u32>,
    pub(super) tool_name: Option<Arc<str>>,
    /// The digest of the call that ran or, if none ran, of the call as received.
    pub(super) digest: Option<CallDigest>,
    pub(super) attempts: u32,
    pub(super) end: Option<End>,
    call_id: Option<CallId>,
    request: Option<RequestId>,
    /// The question of an equal call, whose answer this one waited for.
    shares: Option<RequestId>,
    settled: Option<Settled>,
    /// Who decided, and why, if that was said.
    who: Option<String>,
    reason: Option<String>,
    called: Option<Called>,
}

/// How the call ended.
#[derive(Debug)]
pub(super) enum End {
    /// With this many bytes of output.
    Ok { bytes: usize, dedupe: Dedupe, queue_ms: u64, duration_ms: u64, cancel_requested: bool },
    /// With an error.
    Failed(Box<Failure>),
    /// Not yet: a drain has suspended it (SM-10).
    Suspended,
}

#[derive(Debug)]
enum Settled {
    Yes(Option<SettledBy>),
    No(Option<ErrorKind>),
}

#[derive(Debug)]
struct Called {
    policy_version: u64,
    approval: Option<Approval>,
    edited: bool,
}

/// Why the call was allowed to run, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The policy allowed it.
    Allowed,
    /// An earlier answer covered this call too.
    Remembered,
    /// An approver was asked and approved it; how the question was settled.
    Approved(Option<SettledBy>),
    /// An approver was asked and refused it.
    Refused(ErrorKind),
    /// It was denied without a question.
    Denied(ErrorKind),
    /// Its arguments were invalid.
    Invalid(ErrorKind),
    /// It was allowed, or not checked, but did not start.
    NotRun(ErrorKind),
    /// It shares the result of another call.
    Shared(Dedupe),
    /// It had not started when a drain suspended it: it goes on in another life of the engine.
    Suspended,
    /// Undecided at the end of the log.
    Open,
}

impl Decision {
    /// Its name in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Remembered => "remembered",
            Self::Approved(_) => "approved",
            Self::Refused(_) => "refused",
            Self::Denied(_) => "denied",
            Self::Invalid(_) => "invalid",
            Self::NotRun(_) => "not_run",
            Self::Shared(_) => "shared",
            Self::Suspended => "suspended",
            Self::Open => "open",
        }
    }
}

impl Story {
    pub(super) fn new(line: usize, event: &Event) -> Self {
        Self {
            line,
            wall_ms: event.wall_ms,
            session: event.session.clone(),
            agent: event.agent.clone(),
            turn: event.turn,
            batch: event.batch,
            index: event.index,
            tool_name: event.kind.tool_name().cloned(),
            digest: None,
            attempts: 0,
            end: None,
            call_id: event.call_id.clone(),
            request: None,
            shares: None,
            settled: None,
            who: None,
            reason: None,
            called: None,
        }
    }

    pub(super) fn call_id(&self) -> &str {
        self.call_id.as_ref().map_or("", CallId::as_str)
    }

    /// The id of the question asked about the call.
    pub(super) fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// The id of the question that this call shares with an equal one.
    pub(super) fn shares(&self) -> Option<RequestId> {
        self.shares
    }

    /// Who decided about the call.
    pub(super) fn who(&self) -> Option<&str> {
        self.who.as_deref()
    }

    /// The reason that was given for that.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The version of the policy under which the call ran.
    pub(super) fn policy_version(&self) -> Option<u64> {
        self.called.as_ref().map(|called| called.policy_version)
    }

    /// Whether it ran with other arguments, from the person who approved it.
    pub(super) fn edited(&self) -> bool {
        self.called.as_ref().is_some_and(|called| called.edited)
    }

    /// Reads the call's next event.
    pub(super) fn read(&mut self, kind: EventKind) {
        let digest = kind.digest();
        match kind {
            EventKind::Received { .. } => self.digest = digest,
            EventKind::ConfirmationRequested(it) => {
                (self.request, self.shares) = (Some(it.request), it.shares);
            }
            EventKind::ConfirmationResolved(it) => {
                self.settled = Some(if it.approved { Settled::Yes(it.by) } else { Settled::No(it.error) });
                (self.who, self.reason) = (it.who, it.reason);
            }
            EventKind::Called { policy_version, approval, edited, .. } => {
                self.called = Some(Called { policy_version, approval, edited });
                self.digest = digest.or(self.digest);
            }
            EventKind::Attempt => self.attempts += 1,
            EventKind::Completed { bytes, dedupe, queue_ms, duration_ms, cancel_requested, .. } => {
                self.end = Some(End::Ok { bytes, dedupe, queue_ms, duration_ms, cancel_requested });
            }
            EventKind::InputInvalid(failure) | EventKind::Denied(failure) | EventKind::Failed(failure) => {
                self.end = Some(End::Failed(Box::new(failure)));
            }
            EventKind::Suspended { .. } => self.end = Some(End::Suspended),
            _ => {}
        }
    }

    pub(super) fn decision(&self) -> Decision {
        if let Some(called) = &self.called {
            return match (called.approval, &self.settled) {
                (_, Some(Settled::Yes(by))) => Decision::Approved(*by),
                (Some(Approval::Remembered), _) => Decision::Remembered,
                _ => Decision::Allowed,
            };
        }
        match (&self.end, &self.settled) {
            (None, _) => Decision::Open,
            (Some(End::Suspended), _) => Decision::Suspended,
            (Some(End::Ok { dedupe, .. }), _) => Decision::Shared(*dedupe),
            (Some(End::Failed(failure)), _) if !failure.dedupe.is_fresh() => Decision::Shared(failure.dedupe),
            (Some(End::Failed(failure)), Some(Settled::No(error))) => {
                Decision::Refused(error.unwrap_or(failure.code))
            }
            (Some(End::Failed(failure)), _) => not_started(failure.code),
        }
    }
}

fn not_started(code: ErrorKind) -> Decision {
    use toolyard::error::TerminalEvent;
    match code.terminal_event() {
        TerminalEvent::Denied => Decision::Denied(code),
        TerminalEvent::InputInvalid => Decision::Invalid(code),
        TerminalEvent::Failed => Decision::NotRun(code),
    }
}
