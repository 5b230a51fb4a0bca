//! What a journal has open, and whether the tools of these calls are as they were (JR-5, JR-8).

use crate::{display::clip, logging::redacted, setup::Setup, table::Table};
use serde_json::{Value, json};
use std::path::Path;
use toolyard::{Engine, ValidationError};

const NAME_CHARS: usize = 40;

/// A call that a journal has open, but for those that handlers have dispatched, which end with their call.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) session: String,
    pub(crate) agent: String,
    pub(crate) turn: u64,
    pub(crate) batch: u64,
    pub(crate) place: u32,
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) state: OpenState,
}

/// How far such a call has come.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "journal"), expect(dead_code, reason = "without the feature no journal is read"))]
pub(crate) enum OpenState {
    NotStarted,
    /// Not started, and cancelled: it will not be.
    Cancelled,
    /// Started, with this version of its tool.
    Attempted {
        version: String,
    },
}

impl OpenState {
    fn as_str(&self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Cancelled => "cancelled",
            Self::Attempted { .. } => "attempted",
        }
    }
}

/// How the tool of a call differs from what it was, or from what the call needs.
#[derive(Debug)]
enum Change {
    /// No tool has this name.
    Gone,
    /// Its server is not there now, or has it no more.
    Unavailable,
    /// It is another one than the call was started with.
    Version,
    /// Its schema does not take the arguments, and this is why.
    Schema(String),
}

impl Change {
    fn of(call: &OpenCall, setup: &Setup, engine: &Engine) -> Option<Self> {
        if call.state == OpenState::Cancelled {
            return None;
        }
        let Some(entry) = engine.registry().get(&call.tool) else {
            return Some(if setup.is_missing(&call.tool) { Self::Unavailable } else { Self::Gone });
        };
        match &call.state {
            OpenState::Attempted { version } if *version != entry.spec().version => Some(Self::Version),
            OpenState::Attempted { .. } => None,
            _ => {
                let errors = entry.schema().validate(&call.arguments).err()?;
                Some(Self::Schema(errors.first().map(said).unwrap_or_default()))
            }
        }
    }

    fn as_str(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Unavailable => "unavailable",
            Self::Version => "version",
            Self::Schema(_) => "schema",
        }
    }

    /// What that means for the call.
    fn then(&self, state: &OpenState) -> String {
        match (self, state) {
            (Self::Gone, OpenState::Attempted { .. }) => "gone: the call will end as interrupted".to_owned(),
            (Self::Gone, _) => "gone: the call will not start (not_found)".to_owned(),
            (Self::Unavailable, _) => "not available now: resume when its server is there".to_owned(),
            (Self::Version, _) => {
                "changed: the call will not run again by itself, also if the tool only reads".to_owned()
            }
            (Self::Schema(why), _) => {
                format!("changed: the call will not start (invalid_input): {}", redacted(why))
            }
        }
    }
}

fn said(error: &ValidationError) -> String {
    match error.pointer.as_str() {
        "" => error.message.clone(),
        pointer => format!("{pointer}: {}", error.message),
    }
}

/// What a journal has open.
pub(super) struct Open {
    file: String,
    calls: Vec<(OpenCall, Option<Change>)>,
}

impl Open {
    pub(super) fn of(file: &Path, calls: Vec<OpenCall>, setup: &Setup, engine: &Engine) -> Self {
        let with_change = |call| {
            let change = Change::of(&call, setup, engine);
            (call, change)
        };
        Self { file: file.display().to_string(), calls: calls.into_iter().map(with_change).collect() }
    }

    /// Whether the tool of some call is not as it was.
    pub(super) fn has_changes(&self) -> bool {
        self.changes() > 0
    }

    fn changes(&self) -> usize {
        self.calls.iter().filter(|(_, change)| change.is_some()).count()
    }

    pub(super) fn text(&self) -> String {
        let (open, changed) = (self.calls.len(), self.changes());
        let head =
            format!("\nopen calls in {}: {open}, of which the tool has changed: {changed}\n", self.file);
        if self.calls.is_empty() {
            return head;
        }
        let mut table = Table::new(["session", "agent", "turn", "call", "tool", "state", "tool now"]);
        for (call, change) in &self.calls {
            table.row([
                clip(&call.session, NAME_CHARS),
                clip(&call.agent, NAME_CHARS),
                call.turn.to_string(),
                clip(&call.call_id, NAME_CHARS),
                clip(&call.tool, NAME_CHARS),
                call.state.as_str().replace('_', " "),
                change.as_ref().map_or_else(|| "as it was".to_owned(), |change| change.then(&call.state)),
            ]);
        }
        head + &table.to_string()
    }

    pub(super) fn json(&self) -> Value {
        let one = |(call, change): &(OpenCall, Option<Change>)| {
            json!({
                "session": call.session,
                "agent": call.agent,
                "turn": call.turn,
                "batch": call.batch,
                "place": call.place,
                "call_id": call.call_id,
                "tool": call.tool,
                "state": call.state.as_str(),
                "change": change.as_ref().map(Change::as_str),
                "then": change.as_ref().map(|change| change.then(&call.state)),
            })
        };
        self.calls.iter().map(one).collect()
    }
}
