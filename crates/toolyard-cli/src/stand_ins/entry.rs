//! The lines of a record: what `--record` writes and `--replay` reads (KT-10).
//!
//! ```text
//!   {"toolyard_record":1}                                             the version
//!   {"declares":{"name":"search__web", …}}                            a tool that a server has, which a replay does not start
//!   {"episode":"e1","turn":1,"tool":"t","arguments":{…}, … "output"}  how a call ended
//! ```

use super::key::{CallKey, EpisodeKey, Hash, of_value};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;
use toolyard::{CallError, ToolOutput, ToolSpec};

/// The version of the format.
pub(super) const VERSION: u64 = 1;

/// The longest line, in bytes. A call that would need more is not recorded, and a file that has one is refused.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    /// The version of the format.
    Version {
        /// The version.
        toolyard_record: u64,
    },
    /// A tool.
    Declares {
        /// Its declaration.
        declares: Box<ToolSpec>,
    },
    /// A call.
    Call(Box<Entry>),
}

/// How a call ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The episode's id.
    pub(super) episode: String,
    /// The how manyth of this id it is in the input.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub(super) episode_number: u32,
    /// The turn, from 1.
    pub(super) turn: u64,
    pub(super) tool: String,
    /// The arguments, without secrets.
    pub(super) arguments: Value,
    /// The hash of the arguments with secrets; if it is missing, that of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// The how manyth of the equal calls of the turn it is.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub(super) occurrence: u32,
    /// How often the tool was started.
    #[serde(default = "first")]
    pub(super) attempts: u32,
    /// How long it ran, in milliseconds.
    #[serde(default)]
    pub(super) ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<ToolOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<CallError>,
}

impl Entry {
    /// The call's key, or why it has none.
    pub(super) fn key(&self) -> Result<CallKey, String> {
        if self.output.is_some() == self.error.is_some() {
            return Err("a call has an output, or an error".to_owned());
        }
        let arguments = match &self.digest {
            None => of_value(&self.arguments),
            Some(digits) => from_digits(digits).ok_or("its digest is not 64 hexadecimal digits")?,
        };
        let episode = EpisodeKey { id: self.episode.as_str().into(), number: self.episode_number };
        let (tool, occurrence) = (self.tool.as_str().into(), self.occurrence);
        Ok(CallKey { episode, turn: self.turn, tool, arguments, occurrence })
    }
}

/// A hash in hexadecimal digits.
pub(super) fn digits(hash: &Hash) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_digits(text: &str) -> Option<Hash> {
    let digest: toolyard::CallDigest = text.parse().ok()?;
    Some(*digest.as_bytes())
}

fn first() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a field to this by reference")]
fn is_first(number: &u32) -> bool {
    *number == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(line: &Value) -> Entry {
        match serde_json::from_str(&line.to_string()).unwrap() {
            Line::Call(entry) => *entry,
            other => panic!("{other:?}"),
        }
    }

    /// KT-10: a line that somebody wrote by hand needs no digest; one with a digest is keyed by that.
    #[test]
    fn a_digest_stands_for_the_arguments() {
        let output = json!({"success": true, "content": [{"type": "text", "text": "hi"}]});
        let plain = json!({"episode": "e", "turn": 1, "tool": "t", "arguments": {"a": 1}, "output": output});
        let expect = read(&plain).key().unwrap().hash();
        let mut digested = plain.clone();
        (digested["digest"], digested["arguments"]) =
            (digits(&of_value(&json!({"a": 1}))).into(), json!({"a": "[redacted]"}));
        assert_eq!(read(&digested).key().unwrap().hash(), expect);
        digested["digest"] = "abc".into();
        assert!(read(&digested).key().is_err());
        digested["digest"] = Value::Null;
        assert_ne!(read(&digested).key().unwrap().hash(), expect);
        let mut neither = plain;
        neither["output"] = Value::Null;
        assert!(read(&neither).key().is_err());
    }
}
