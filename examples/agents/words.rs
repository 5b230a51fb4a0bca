//! An agent in Rust, with the standard library and `serde_json` alone: it reads notes at once, and gives their longest words
//! to whoever started it.
//!
//! ```text
//!   input: the paths of notes ─► one `tool_calls`: Read, Read, … ─► answers, as they come ─► bye {path: word}
//! ```
//!
//! ```sh
//! cargo build -p toolyard-agents --example words
//! toolyard supervise --tools Read --fs r:examples/workspace --input '["examples/workspace/notes/pests.md"]' -- target/debug/examples/words
//! ```
//!
//! The lines are those of `docs/agents.md`.

use serde_json::{Map, Value, json};
use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
};

/// The most bytes of a line of the supervisor that is read.
const LINE_BYTES_MAX: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut lines = Lines::default();
    lines.say(&json!({"op": "hello", "protocol": 1}))?;
    let welcome = lines.hear()?.ok_or("nobody is there")?;
    let paths: Vec<&str> =
        welcome["input"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let calls: Vec<Value> = paths
        .iter()
        .map(|path| json!({"tool_call_id": path, "tool": "Read", "args": {"path": path}}))
        .collect();
    lines.say(&json!({"op": "tool_calls", "calls": calls}))?;
    let mut words = Map::new();
    while words.len() < paths.len() {
        let Some(line) = lines.hear()? else { break };
        match line["op"].as_str() {
            Some("tool_response") => {
                let path = line["tool_call_id"].as_str().unwrap_or_default();
                words.insert(path.to_owned(), longest(&line).into());
            }
            Some("error") => return Err(line["message"].to_string().into()),
            // The supervisor wants it to end: what it has is its result.
            Some("shutdown") => break,
            // Lines of later versions are left out.
            _ => {}
        }
    }
    Ok(lines.say(&json!({"op": "bye", "result": words}))?)
}

/// The longest word of a note, or what was wrong with its call.
fn longest(response: &Value) -> String {
    match response["result"]["content"].as_str() {
        Some(text) => {
            let words = text.split(|char: char| !char.is_alphanumeric());
            words.max_by_key(|word| word.chars().count()).unwrap_or_default().to_owned()
        }
        None => response["error"].as_str().unwrap_or("no answer").to_owned(),
    }
}

/// The channel: standard input and output, one JSON object a line.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Writes a line. Nothing is left in a buffer: the supervisor answers what it has.
    fn say(&self, line: &Value) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }

    /// Waits for the next line; `None` when the supervisor has closed the channel.
    fn hear(&mut self) -> Result<Option<Value>, Box<dyn Error>> {
        self.0.clear();
        let read = io::Read::take(io::stdin().lock(), LINE_BYTES_MAX).read_line(&mut self.0)?;
        Ok(if read == 0 { None } else { Some(serde_json::from_str(&self.0)?) })
    }
}
