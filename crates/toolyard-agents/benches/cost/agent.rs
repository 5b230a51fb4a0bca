//! The agents that are measured.

use crate::measure::Failed;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _, stdin, stdout};
use tokio::time::Instant;

/// The argument that makes this program an agent; what it does follows.
pub(crate) const ROLE: &str = "--agent";

pub(crate) fn main(what: &[String]) -> Result<(), Failed> {
    let number = |at: usize| what.get(at).and_then(|text| text.parse::<usize>().ok()).unwrap_or(1);
    match what.first().map(String::as_str) {
        Some("trips") => trips(number(1), what.get(2).map_or("Echo", String::as_str)),
        Some("reads") => reads(number(1), what.get(2).is_some_and(|how| how == "at-once")),
        Some("waits") => waits(),
        _ => calls(),
    }
}

fn say(line: &Value) -> Result<(), Failed> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn hear() -> Result<String, Failed> {
    let mut line = String::new();
    match stdin().lock().read_line(&mut line)? {
        0 => Err("the input has ended".into()),
        _ => Ok(line),
    }
}

fn call(id: usize, tool: &str) -> Value {
    json!({"op": "tool_call", "tool_call_id": id.to_string(), "tool": tool, "args": {"text": "x"}})
}

/// Makes calls one after another; ends with the nanoseconds that each took, in the median of a hundred parts.
fn trips(count: usize, tool: &str) -> Result<(), Failed> {
    let part = (count / 100).max(1);
    let mut parts = Vec::new();
    for n in 0..count / part {
        let began = Instant::now();
        for k in 0..part {
            say(&call(n * part + k, tool))?;
            let answer = hear()?;
            if !answer.contains("\"ok\":true") {
                return Err(answer.into());
            }
        }
        parts.push(began.elapsed().as_nanos() as u64 / part as u64);
    }
    parts.sort_unstable();
    say(&json!({"op": "bye", "result": parts[parts.len() / 2]}))
}

/// Makes reads that take a while; ends with the nanoseconds that all took.
fn reads(count: usize, at_once: bool) -> Result<(), Failed> {
    let began = Instant::now();
    for n in 0..count {
        say(&call(n, "slow"))?;
        if !at_once {
            hear()?;
        }
    }
    if at_once {
        (0..count).try_for_each(|_| hear().map(drop))?;
    }
    say(&json!({"op": "bye", "result": began.elapsed().as_nanos() as u64}))
}

/// Makes one call, and waits to be told to end.
fn waits() -> Result<(), Failed> {
    say(&call(0, "Echo"))?;
    hear()?;
    let _ = hear();
    Ok(())
}

/// Makes calls until it is ended, two at once.
fn calls() -> Result<(), Failed> {
    for n in 0.. {
        say(&call(2 * n, "Echo"))?;
        say(&call(2 * n + 1, "slow"))?;
        hear()?;
        hear()?;
    }
    Ok(())
}
