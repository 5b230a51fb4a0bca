//! Records as the writer gets them: copied, on the thread that gives them, as cheaply as can be.
//!
//! What is shared (ids, names, calls with their arguments) is shared; a result, and the arguments of an attempt, are
//! written as JSON at once, because they are only lent. What has no text yet gets it from the writer.

mod ends;

pub(crate) use ends::{End, EndsOp};

use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard::{
    AgentPath, AttemptEnd, AttemptRecord, Call, CallError, CallId, CallPlace, Dedupe, EndRecord, ErrorKind,
    QuestionRecord, ResumeRecord, Routing, Sandbox, SessionId, SessionTerms, ToolOutput,
};

/// The place of a call.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) session: SessionId,
    pub(crate) batch: u64,
    pub(crate) index: u32,
    /// Whose call it is said to be: what a verdict names may be of another epoch, and is compared.
    pub(crate) agent: AgentPath,
    pub(crate) turn: u64,
    pub(crate) call_id: CallId,
}

impl From<CallPlace<'_>> for Place {
    fn from(call: CallPlace<'_>) -> Self {
        let CallPlace { session, agent, turn, batch, index, call_id, .. } = call;
        Self { session: session.clone(), batch, index, agent: agent.clone(), turn, call_id: call_id.clone() }
    }
}

/// What a call, or an attempt of it, has ended with.
#[derive(Debug)]
pub(crate) struct Status {
    /// The JSON of the output, or of the error.
    pub(crate) text: String,
    /// The code of the error; `None` for an output.
    pub(crate) code: Option<ErrorKind>,
}

impl Status {
    pub(crate) fn of(status: Result<&ToolOutput, &CallError>) -> Self {
        let mut text = Vec::new();
        ends::write_status(&mut text, status);
        let text = String::from_utf8(text).expect("JSON is text");
        Self { text, code: status.err().map(|error| error.kind) }
    }
}

/// The JSON of a value whose keys are all texts.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> String {
    format!("not written as JSON: {error}")
}

/// A record.
#[derive(Debug)]
pub(crate) enum Op {
    Engine {
        epoch: String,
    },
    Session {
        session: SessionId,
        is_named: bool,
        terms: String,
    },
    Fork {
        session: SessionId,
        agent: AgentPath,
        parent: AgentPath,
        is_named: bool,
        made_by: Option<Place>,
        terms: String,
    },
    Batch(Box<BatchOp>),
    Pushed {
        to: OpenBatch,
        index: u32,
        calls: Vec<Call>,
    },
    Closed {
        batch: OpenBatch,
        calls: u32,
        request: Option<String>,
    },
    Question(Box<QuestionOp>),
    Answer(Box<AnswerOp>),
    Attempt(Box<AttemptOp>),
    AttemptEnded {
        call: Place,
        attempt: u32,
        status: Status,
        is_retried: bool,
    },
    Ended(Box<EndOp>),
    Ends(Box<EndsOp>),
    Cancelled {
        session: SessionId,
        agent: AgentPath,
        what: CancelOp,
    },
    Resumed(Box<ResumeOp>),
    Verdict {
        call: Place,
        found: &'static str,
        output: Option<String>,
    },
    Forget {
        session: String,
        key: String,
    },
}

/// A batch whose calls are still coming.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) turn: u64,
    pub(crate) batch: u64,
}

#[derive(Debug)]
pub(crate) struct BatchOp {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) turn: u64,
    pub(crate) batch: u64,
    pub(crate) request: Option<String>,
    pub(crate) parent: Option<Place>,
    pub(crate) calls: Vec<Call>,
    pub(crate) is_open: bool,
    pub(crate) is_sequential: bool,
    pub(crate) is_resend: bool,
}

#[derive(Debug)]
pub(crate) struct QuestionOp {
    pub(crate) call: Place,
    pub(crate) request: String,
    pub(crate) digest: String,
    pub(crate) arguments: String,
    pub(crate) shares: Option<String>,
    pub(crate) expires_ms: i64,
    /// Where paths that are links lead, as JSON; `None` without such paths.
    pub(crate) links: Option<String>,
}

impl From<&QuestionRecord<'_>> for QuestionOp {
    fn from(record: &QuestionRecord<'_>) -> Self {
        let request = record.request;
        let links: Vec<_> = request.links().iter().map(ToString::to_string).collect();
        Self {
            call: record.call.into(),
            request: request.id().to_string(),
            digest: request.digest().to_string(),
            arguments: request.arguments().to_string(),
            shares: record.shares.map(|shares| shares.to_string()),
            expires_ms: whole(request.expires_in().as_millis()),
            links: (!links.is_empty()).then(|| json_of(&links)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct AnswerOp {
    pub(crate) call: Place,
    pub(crate) request: String,
    pub(crate) digest: String,
    pub(crate) decision: String,
    pub(crate) who: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) edited: Option<toolyard::Arguments>,
    pub(crate) settled_by: String,
}

#[derive(Debug)]
pub(crate) struct AttemptOp {
    pub(crate) call: Place,
    pub(crate) attempt: u32,
    pub(crate) version: String,
    pub(crate) side_effects: &'static str,
    /// `None` if they are those that its call came with, as the engine says or SQLite finds.
    pub(crate) arguments: Option<String>,
    pub(crate) approval: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) timeout_ms: i64,
    pub(crate) key: Option<String>,
    pub(crate) facts: Facts,
}

impl From<&AttemptRecord<'_>> for AttemptOp {
    fn from(record: &AttemptRecord<'_>) -> Self {
        let tool = record.tool;
        let facts = Facts {
            is_repeatable: tool.is_repeatable(),
            is_recursive: tool.recursive,
            cost: tool.settings.cost,
            sandbox: record.confinement.sandbox,
        };
        Self {
            call: record.call.into(),
            attempt: record.attempt,
            version: tool.version.clone(),
            side_effects: tool.side_effects.as_str(),
            arguments: (!record.is_as_sent).then(|| json_of(record.arguments)),
            approval: record.approval.map(|approval| word(&approval)),
            digest: record.digest.map(|digest| digest.to_string()),
            timeout_ms: whole(record.timeout.as_millis()),
            key: record.key.map(str::to_owned),
            facts,
        }
    }
}

/// The end of an attempt, and how many bytes of text it has.
pub(crate) fn attempt_ended(record: &AttemptEnd<'_>) -> (Op, usize) {
    let (attempt, is_retried, status) = (record.attempt, record.is_retried, Status::of(record.status));
    let bytes = status.text.len();
    (Op::AttemptEnded { call: record.call.into(), attempt, status, is_retried }, bytes)
}

/// What of an attempt has no column of its own: written as JSON.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Facts {
    pub(crate) is_repeatable: bool,
    pub(crate) is_recursive: bool,
    pub(crate) cost: Option<u64>,
    pub(crate) sandbox: Sandbox,
}

/// The same of an end.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Ending {
    routing: Routing,
    run: u32,
    cancel_requested: bool,
    queued_us: i64,
    ran_us: i64,
}

impl Ending {
    /// About how many bytes it has as JSON, and so have the facts of an attempt.
    pub(crate) const BYTES: usize = 96;

    pub(crate) fn new(
        routing: Routing,
        run: u32,
        cancel_requested: bool,
        queued: Duration,
        ran: Duration,
    ) -> Self {
        let (queued_us, ran_us) = (whole(queued.as_micros()), whole(ran.as_micros()));
        Self { routing, run, cancel_requested, queued_us, ran_us }
    }

    fn of(end: &EndRecord<'_>) -> Self {
        Self::new(end.routing, end.run, end.cancel_requested, end.queued, end.ran)
    }
}

#[derive(Debug)]
pub(crate) struct EndOp {
    pub(crate) call: Place,
    pub(crate) status: Status,
    pub(crate) dedupe: Dedupe,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
    pub(crate) ending: Ending,
    pub(crate) was_waited_for: bool,
}

impl EndOp {
    /// The end as it is written.
    pub(crate) fn end(&self) -> End<'_> {
        End {
            status: self.status.text.as_str().into(),
            code: self.status.code,
            dedupe: self.dedupe,
            attempts: self.attempts,
            sandbox: self.sandbox,
            ending: self.ending,
            was_waited_for: self.was_waited_for,
        }
    }
}

impl From<&EndRecord<'_>> for EndOp {
    fn from(record: &EndRecord<'_>) -> Self {
        Self {
            call: record.call.into(),
            status: Status::of(record.status),
            dedupe: record.dedupe,
            attempts: record.attempts,
            sandbox: record.sandbox,
            ending: Ending::of(record),
            was_waited_for: record.must_wait(),
        }
    }
}

/// A turn that is taken up, with the calls that end with that.
#[derive(Debug)]
pub(crate) struct ResumeOp {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) turn: u64,
    pub(crate) ended: Vec<(EndOp, Option<Started>)>,
}

/// What a call that ends was started as, under a key: if the record of its attempt was lost, this is in its place (JR-7).
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) side_effects: &'static str,
    pub(crate) facts: Facts,
}

impl Started {
    fn of(record: &EndRecord<'_>) -> Option<Self> {
        let tool = record.tool?;
        Some(Self {
            key: record.key?.to_owned(),
            version: tool.version.clone(),
            side_effects: tool.side_effects.as_str(),
            facts: Facts {
                is_repeatable: tool.is_repeatable(),
                is_recursive: tool.recursive,
                cost: tool.settings.cost,
                sandbox: record.sandbox,
            },
        })
    }
}

impl From<&ResumeRecord<'_>> for ResumeOp {
    fn from(record: &ResumeRecord<'_>) -> Self {
        let (session, agent) = (record.session.clone(), record.agent.clone());
        let ended = record.ended.iter().map(|end| (EndOp::from(end), Started::of(end))).collect();
        Self { session, agent, turn: record.turn, ended }
    }
}

#[derive(Debug)]
pub(crate) enum CancelOp {
    Session,
    InFlight,
    Turn(u64),
    Batch(u64),
    Calls { turn: Option<u64>, id: String },
    Call { turn: u64, batch: u64, index: u32 },
}

/// The settings of a session, as JSON. Confirmations are left out: they have no form of text, and the program
/// sets them again.
pub(crate) fn terms(terms: &SessionTerms) -> String {
    let capabilities = terms.capabilities.as_ref().map(|of| {
        let fs = of.fs_grants().map(|grants| {
            let grant = |grant: &toolyard::FsGrant| json!({"mode": grant.mode(), "path": grant.path()});
            grants.iter().map(grant).collect::<Vec<_>>()
        });
        let net = of.net_patterns().map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        json!({"fs": fs, "net": net})
    });
    let terms = json!({
        "only_tools": terms.only_tools.as_ref().map(|names| names.iter().map(AsRef::as_ref).collect::<Vec<&str>>()),
        "capabilities": capabilities,
        "role": terms.role.as_deref(),
        "max_in_flight": terms.max_in_flight,
        "tree_max_in_flight": terms.tree_max_in_flight,
        "weight": terms.weight,
        "budgets": terms.budgets,
        "shares_concurrent": terms.shares_concurrent,
        "description": terms.description.as_deref(),
    });
    terms.to_string()
}

/// The word that serde has for a value.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => format!("{other:?}"),
    }
}

/// As SQLite has numbers.
pub(crate) fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
