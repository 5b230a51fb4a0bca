//! Records as a ledger keeps them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use toolyard::{
    AgentPath, Answer, AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, Call, CallDigest, CallError,
    CallPlace, CancelRecord, Cancelled, EndRecord, PastAttempt, PastEnd, RequestId, ResumeRecord, SessionId,
    ToolOutput, event::Epoch,
};

/// As good as no bound.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Which call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) session: SessionId,
    pub(super) batch: u64,
    pub(super) index: u32,
}

impl Place {
    pub(super) fn of(call: CallPlace<'_>) -> Self {
        Self { session: call.session.clone(), batch: call.batch, index: call.index }
    }
}

#[derive(Clone)]
pub(super) enum Op {
    Engine(Epoch),
    Session {
        session: SessionId,
        is_named: bool,
        description: Option<Arc<str>>,
    },
    Fork {
        session: SessionId,
        agent: AgentPath,
        is_named: bool,
        /// What it is described by, unless a handler has made it.
        description: Option<Arc<str>>,
        made_by_handler: bool,
    },
    Batch(Box<BatchOp>),
    Pushed {
        session: SessionId,
        batch: u64,
        calls: Vec<Call>,
    },
    Closed {
        session: SessionId,
        batch: u64,
        request: Option<Arc<str>>,
    },
    Question {
        call: Place,
        request: RequestId,
        links: Vec<String>,
    },
    Answer {
        call: Place,
        request: RequestId,
        digest: CallDigest,
        answer: Answer,
    },
    Attempt {
        call: Place,
        attempt: Box<PastAttempt>,
        /// When it is over at the latest.
        until: Instant,
    },
    AttemptEnded {
        call: Place,
        status: Result<ToolOutput, CallError>,
        is_retried: bool,
    },
    Ended {
        call: Place,
        end: Box<PastEnd>,
        at: SystemTime,
    },
    Cancelled {
        session: SessionId,
        agent: AgentPath,
        what: CancelOp,
    },
    Verdict {
        call: Place,
        done: Option<ToolOutput>,
    },
    Resumed {
        session: SessionId,
        agent: AgentPath,
        turn: u64,
        ended: Vec<(Place, PastEnd)>,
        at: SystemTime,
    },
}

#[derive(Clone)]
pub(super) struct BatchOp {
    pub(super) session: SessionId,
    pub(super) agent: AgentPath,
    pub(super) turn: u64,
    pub(super) batch: u64,
    pub(super) request: Option<Arc<str>>,
    pub(super) parent: Option<Place>,
    pub(super) calls: Vec<Call>,
    pub(super) is_open: bool,
    pub(super) is_sequential: bool,
    pub(super) is_resend: bool,
    pub(super) arrived: SystemTime,
}

#[derive(Clone)]
pub(super) enum CancelOp {
    Session,
    InFlight,
    Turn(u64),
    Batch(u64),
    Calls { turn: Option<u64>, id: String },
    Call { batch: u64, index: u32 },
}

impl Op {
    pub(super) fn batch(record: &BatchRecord<'_>) -> Self {
        Self::Batch(Box::new(BatchOp {
            session: record.session.clone(),
            agent: record.agent.clone(),
            turn: record.turn,
            batch: record.batch,
            request: record.request.map(Arc::from),
            parent: record.parent.map(Place::of),
            calls: record.calls.iter().copied().cloned().collect(),
            is_open: record.is_open,
            is_sequential: record.is_sequential,
            is_resend: record.is_resend,
            arrived: SystemTime::now(),
        }))
    }

    pub(super) fn answer(record: &AnswerRecord<'_>) -> Self {
        let (call, answer) = (Place::of(record.call), record.answer.clone());
        Self::Answer { call, request: record.request, digest: record.digest, answer }
    }

    pub(super) fn attempt(record: &AttemptRecord<'_>) -> Self {
        let attempt = PastAttempt {
            attempt: record.attempt,
            version: record.tool.version.clone(),
            side_effects: record.tool.side_effects,
            is_repeatable: record.tool.is_repeatable(),
            is_recursive: record.tool.recursive,
            key: record.key.map(Arc::from),
            arguments: record.arguments.clone(),
            time_left: Duration::ZERO,
            retried_after: None,
        };
        // One without a timeout may be under way for ever.
        let until = Instant::now() + record.timeout.min(YEAR);
        Self::Attempt { call: Place::of(record.call), attempt: Box::new(attempt), until }
    }

    pub(super) fn attempt_ended(record: &AttemptEnd<'_>) -> Self {
        let status = record.status.cloned().map_err(Clone::clone);
        Self::AttemptEnded { call: Place::of(record.call), status, is_retried: record.is_retried }
    }

    pub(super) fn ended(record: &EndRecord<'_>) -> Self {
        Self::Ended { call: Place::of(record.call), end: Box::new(end(record)), at: SystemTime::now() }
    }

    pub(super) fn cancelled(record: &CancelRecord<'_>) -> Self {
        let what = match record.what {
            Cancelled::Session => CancelOp::Session,
            Cancelled::Turn(turn) => CancelOp::Turn(turn),
            Cancelled::Batch(batch) => CancelOp::Batch(batch),
            Cancelled::Calls { turn, id } => CancelOp::Calls { turn, id: id.to_owned() },
            Cancelled::Call { batch, index, .. } => CancelOp::Call { batch, index },
            _ => CancelOp::InFlight,
        };
        Self::Cancelled { session: record.session.clone(), agent: record.agent.clone(), what }
    }

    pub(super) fn resumed(record: &ResumeRecord<'_>) -> Self {
        let ended = record.ended.iter().map(|it| (Place::of(it.call), end(it))).collect();
        let (session, agent) = (record.session.clone(), record.agent.clone());
        Self::Resumed { session, agent, turn: record.turn, ended, at: SystemTime::now() }
    }

    /// As if it had been given so much earlier.
    pub(super) fn earlier(mut self, by: Duration) -> Self {
        match &mut self {
            Self::Batch(batch) => batch.arrived -= by,
            Self::Ended { at, .. } | Self::Resumed { at, .. } => *at -= by,
            _ => {}
        }
        self
    }
}

fn end(record: &EndRecord<'_>) -> PastEnd {
    PastEnd {
        status: record.status.cloned().map_err(Clone::clone),
        attempts: record.attempts,
        dedupe: record.dedupe,
        routing: record.routing,
        sandbox: record.sandbox,
        cancel_requested: record.cancel_requested,
        queued: record.queued,
        ran: record.ran,
    }
}
