//! Episodes: JSON lines that each hold the calls of a whole conversation, and the lines that answer them.
//!
//! ```text
//!   {"id":…,"tools":[…]?,"turns":[[call…]…]}   ─►  Episode
//!   outcomes of one turn                       ─►  {"id":…,"turn":0,"results":[…]}
//! ```
//!
//! Turns run in order, each as one batch. Unknown fields are ignored, so that a file may also carry its
//! expectations.

use crate::{
    DecodeError, Format, Message,
    decode::neutral_call,
    draft::Draft,
    json::{self, Fields},
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use toolyard_core::{Call, Outcome, ToolClass};

/// The calls of one conversation.
///
/// # Examples
/// ```
/// use toolyard_wire::Episode;
/// let episode = Episode::parse_line(r#"{"id":"e1","turns":[[{"call_id":"a","name":"now","arguments":{}}]]}"#)?;
/// assert_eq!(episode.turns[0][0].name.as_ref(), "now");
/// assert!(Episode::parse_line(r#"{"calls":[]}"#).unwrap_err().to_string().contains("--from neutral"));
/// # Ok::<(), toolyard_wire::EpisodeError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// Its id.
    pub id: String,
    /// The tools that it declares, for planning and validation: declaring a tool does not make it runnable.
    pub tools: Option<Vec<EpisodeTool>>,
    /// A batch of calls per turn.
    pub turns: Vec<Vec<Call>>,
}

/// A tool that an episode declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeTool {
    /// The name that calls use.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments; `None` accepts any object.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// How its calls may run beside others; a tool without a hint runs alone.
    #[serde(default)]
    pub class_hint: Option<ClassHint>,
}

/// How calls of a declared tool may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassHint {
    /// Changes nothing: class read.
    ReadOnly,
    /// Changes state, one call at a time: class serial.
    SerialMut,
    /// Changes state, safe beside other calls: class concurrent.
    ConcurrentMut,
}

impl ClassHint {
    /// The class that the hint stands for.
    pub const fn class(self) -> ToolClass {
        match self {
            Self::ReadOnly => ToolClass::Read,
            Self::SerialMut => ToolClass::Serial,
            Self::ConcurrentMut => ToolClass::Concurrent,
        }
    }

    /// The hint that stands for a class.
    pub const fn of(class: ToolClass) -> Self {
        match class {
            ToolClass::Read => Self::ReadOnly,
            ToolClass::Serial => Self::SerialMut,
            ToolClass::Concurrent => Self::ConcurrentMut,
        }
    }
}

/// Why a line is not an episode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpisodeError {
    /// The line cannot be read, or a part of it is of the wrong kind.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The line is a neutral batch.
    #[error(
        "this is a batch with `calls`, not an episode with `turns`: read it with --from neutral, one at a time"
    )]
    Batch,
    /// A required field is missing.
    #[error("the episode has no `{0}`")]
    Missing(&'static str),
    /// A tool's declaration cannot be read.
    #[error("tools[{index}]: {reason}")]
    Tool {
        /// Its position in `tools`.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl Episode {
    /// Parses one line. Calls are as in the neutral form: a missing id is generated, arguments may be text.
    ///
    /// # Errors
    /// [`EpisodeError`], which names the problem, and its place in the line where there is one.
    pub fn parse_line(line: &str) -> Result<Self, EpisodeError> {
        let value = json::parse(json::bounded(line)?)?;
        let mut fields = json::object(value, "the line")?;
        if fields.contains_key("calls") && !fields.contains_key("turns") {
            return Err(EpisodeError::Batch);
        }
        let turns = json::take(&mut fields, "turns").ok_or(EpisodeError::Missing("turns"))?;
        Ok(Self {
            id: json::take_text(&mut fields, "id").ok_or(EpisodeError::Missing("id"))?,
            tools: tools(json::take(&mut fields, "tools"))?,
            turns: parse_turns(turns)?,
        })
    }

    /// Parses every line that is not blank, with its number from 1.
    pub fn parse_lines(text: &str) -> impl Iterator<Item = (usize, Result<Self, EpisodeError>)> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        lines.map(|(index, line)| (index + 1, Self::parse_line(line)))
    }

    /// The line that answers a turn, counted from 0: `{"id","turn","results":[{"call_id","name","ok","output"
    /// or "error"}…]}`. An output is the tool's data if it has any, otherwise its text; an error is the whole error
    /// with its code.
    ///
    /// It is put together only while it is serialised, one result at a time.
    pub fn results<'a>(&'a self, turn: usize, outcomes: &'a [Outcome]) -> TurnResults<'a> {
        TurnResults { id: &self.id, turn, results: List(outcomes) }
    }
}

/// The line that answers a turn of an episode; see [`Episode::results`].
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TurnResults<'a> {
    id: &'a str,
    turn: usize,
    results: List<'a>,
}

/// The results of a turn.
#[derive(Debug, Clone, Copy)]
struct List<'a>(&'a [Outcome]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(result))
    }
}

fn result(outcome: &Outcome) -> Value {
    let key = if outcome.success() { "output" } else { "error" };
    json!({
        "call_id": outcome.call_id.as_str(),
        "name": outcome.tool.as_ref(),
        "ok": outcome.success(),
        key: outcome.output(),
    })
}

fn tools(value: Option<Value>) -> Result<Option<Vec<EpisodeTool>>, EpisodeError> {
    if matches!(value, None | Some(Value::Null)) {
        return Ok(None);
    }
    let tool = |(index, value)| {
        let reason = |error: serde_json::Error| error.to_string();
        let tool = serde_json::from_value(value).map_err(reason);
        tool.map_err(|reason| EpisodeError::Tool { index, reason })
    };
    let items = json::items(value, "tools")?;
    items.into_iter().enumerate().map(tool).collect::<Result<_, _>>().map(Some)
}

fn parse_turns(value: Value) -> Result<Vec<Vec<Call>>, DecodeError> {
    let turns = json::items(Some(value), "turns")?;
    let turn = |(index, value): (usize, Value)| {
        let place = format!("turns[{index}]");
        if !value.is_array() {
            return Err(json::shape(&place, "an array of calls", &value));
        }
        let calls = json::items(Some(value), &place)?;
        let drafts: Vec<Draft> = calls
            .into_iter()
            .enumerate()
            .map(|(call, value)| {
                let place = format!("{place}[{call}]");
                let fields: Fields = json::object(value, &place)?;
                neutral_call(fields, &place)
            })
            .collect::<Result<_, _>>()?;
        Ok(Message::of(Format::Neutral, drafts.into()).into_calls())
    };
    turns.into_iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests;
