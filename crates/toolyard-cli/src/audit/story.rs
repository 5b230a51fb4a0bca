//! What is told of one call: who, what, why it might run, what came of it.

use std::sync::Arc;
use toolyard::{
    AgentPath, CallDigest, CallId, Dedupe, ErrorKind, Event, EventKind, RequestId, SessionId,
    event::{Approval, Failure, SettledBy},
};

/// One call, from its events.
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
    /// Of what ran, or else of the call as it came in.
    pub(super) digest: Option<CallDigest>,
    pub(super) attempts: u32,
    pub(super) end: Option<End>,
    call_id: Option<CallId>,
    request: Option<RequestId>,
    settled: Option<Settled>,
    called: Option<Called>,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum End {
    /// With so many bytes of output.
    Ok { bytes: usize, dedupe: Dedupe, queue_ms: u64, duration_ms: u64, cancel_requested: bool },
    /// With an error.
    Failed(Box<Failure>),
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
}

/// Why it might run, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The policy let it run.
    Allowed,
    /// An earlier answer was for this one too.
    Remembered,
    /// It was asked about and approved, by this.
    Approved(Option<SettledBy>),
    /// It was asked about and refused.
    Refused(ErrorKind),
    /// It was refused without a question.
    Denied(ErrorKind),
    /// Its arguments were refused.
    Invalid(ErrorKind),
    /// It was let through, or not looked at, and did not start.
    NotRun(ErrorKind),
    /// It has what another call came to.
    Shared(Dedupe),
    /// Nothing is decided when the log ends.
    Open,
}

impl Decision {
    /// The word for programs.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Remembered => "remembered",
            Self::Approved(_) => "approved",
            Self::Refused(_) => "refused",
            Self::Denied(_) => "denied",
            Self::Invalid(_) => "invalid",
            Self::NotRun(_) => "not_run",
            Self::Shared(_) => "shared",
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
            settled: None,
            called: None,
        }
    }

    pub(super) fn call_id(&self) -> &str {
        self.call_id.as_ref().map_or("", CallId::as_str)
    }

    /// The number of the question about it.
    pub(super) fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// The policy under which it ran.
    pub(super) fn policy_version(&self) -> Option<u64> {
        self.called.as_ref().map(|called| called.policy_version)
    }

    /// Reads the next event of it.
    pub(super) fn read(&mut self, kind: EventKind) {
        match kind {
            EventKind::Received { digest, .. } => self.digest = digest,
            EventKind::ConfirmationRequested { request, .. } => self.request = Some(request),
            EventKind::ConfirmationResolved { approved: true, by, .. } => {
                self.settled = Some(Settled::Yes(by))
            }
            EventKind::ConfirmationResolved { error, .. } => self.settled = Some(Settled::No(error)),
            EventKind::Called { policy_version, approval, digest, .. } => {
                self.called = Some(Called { policy_version, approval });
                self.digest = digest.or(self.digest);
            }
            EventKind::Attempt => self.attempts += 1,
            EventKind::Completed { bytes, dedupe, queue_ms, duration_ms, cancel_requested, .. } => {
                self.end = Some(End::Ok { bytes, dedupe, queue_ms, duration_ms, cancel_requested });
            }
            EventKind::InputInvalid(failure) | EventKind::Denied(failure) | EventKind::Failed(failure) => {
                self.end = Some(End::Failed(Box::new(failure)));
            }
            _ => {}
        }
    }

    /// Why it might run, or why not.
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
            (Some(End::Ok { dedupe, .. }), _) => Decision::Shared(*dedupe),
            (Some(End::Failed(failure)), _) if !failure.dedupe.is_fresh() => Decision::Shared(failure.dedupe),
            (Some(End::Failed(failure)), Some(Settled::No(error))) => {
                Decision::Refused(error.unwrap_or(failure.code))
            }
            (Some(End::Failed(failure)), _) => not_let_through(failure.code),
        }
    }
}

fn not_let_through(code: ErrorKind) -> Decision {
    use toolyard::error::TerminalEvent;
    match code.terminal_event() {
        TerminalEvent::Denied => Decision::Denied(code),
        TerminalEvent::InputInvalid => Decision::Invalid(code),
        TerminalEvent::Failed => Decision::NotRun(code),
    }
}
