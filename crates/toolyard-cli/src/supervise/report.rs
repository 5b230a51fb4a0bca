//! What is said of agents that have ended.

use crate::{logging::redacted, table::Table};
use serde_json::{Map, Value, json};
use toolyard::{Redactor, is_plain};
use toolyard_agents::{AgentReport, ModelUse};

/// A table of agents, and why some did not end well.
pub(super) fn text(reports: &[AgentReport]) -> String {
    let mut table =
        Table::new(["agent", "profile", "pid", "end", "calls", "failed", "lines refused", "models", "lived"]);
    for report in reports {
        table.row([
            report.agent.to_string(),
            report.profile.clone(),
            report.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            report.end.to_string(),
            report.counts.calls.to_string(),
            report.counts.failed.to_string(),
            report.counts.refused_lines.to_string(),
            report.model_requests().to_string(),
            format!("{:.1} s", report.lived.as_secs_f64()),
        ]);
    }
    let mut text = table.to_string();
    for report in reports {
        if let Some(why) = report.end.why() {
            // It may quote what the agent wrote.
            text += &format!("{}: {}\n", report.agent, escaped(&redacted(why)));
        }
    }
    text
}

/// A text on one line, in which nothing moves a cursor.
fn escaped(text: &str) -> String {
    let each = |char| if is_plain(char) { char.to_string() } else { char.escape_default().to_string() };
    text.chars().map(each).collect()
}

/// What an agent has asked of a model.
fn model(used: &ModelUse) -> (String, Value) {
    let ModelUse { name, requests, requests_max, bytes, .. } = used;
    (name.clone(), json!({"requests": requests, "requests_max": requests_max, "bytes": bytes}))
}

/// The same as one JSON document.
pub(super) fn json(reports: &[AgentReport], redactor: &Redactor) -> Value {
    let agent = |report: &AgentReport| {
        json!({
            "agent": report.agent.as_str(),
            "profile": report.profile,
            "pid": report.pid,
            "end": report.end.to_string(),
            "why": report.end.why(),
            "result": report.result,
            "calls": report.counts.calls,
            "answered": report.counts.answered,
            "failed": report.counts.failed,
            "refused_lines": report.counts.refused_lines,
            "model_requests": report.model_requests(),
            "models": report.models.iter().map(model).collect::<Map<String, Value>>(),
            "lived_ms": u64::try_from(report.lived.as_millis()).unwrap_or(u64::MAX),
            "cpu_ms": report.used.map(|used| u64::try_from(used.cpu.as_millis()).unwrap_or(u64::MAX)),
            "memory_peak": report.used.map(|used| used.memory_peak),
        })
    };
    let agents: Vec<Value> = reports.iter().map(agent).collect();
    let report = json!({"agents": agents, "ok": reports.iter().all(|report| report.end.is_ok())});
    redactor.value(&report).into_owned()
}
