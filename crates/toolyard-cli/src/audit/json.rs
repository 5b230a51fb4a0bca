//! The account for programs: one JSON object, written while the log is read.

use super::{
    Account,
    findings::{Finding, Findings},
    places::Place,
    story::{Decision, End, Story},
};
use crate::display::json_text;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use toolyard::{Event, error::Slug};

/// The number of happenings that are kept; any others are only counted.
const HAPPENINGS_MAX: usize = 10_000;

/// Writes the start of the object, then each call as it ends, then the rest.
pub(super) struct Json<W> {
    out: W,
    calls: usize,
    happenings: Vec<Value>,
    left_out: u64,
}

impl<W: Write> Json<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, calls: 0, happenings: Vec::new(), left_out: 0 }
    }
}

impl<W: Write> Account for Json<W> {
    fn call(&mut self, story: &Story, place: &Place) -> io::Result<()> {
        let before = if self.calls == 0 { "{\"calls\":[\n" } else { ",\n" };
        self.calls += 1;
        write!(self.out, "{before}{}", json_text(&call(story, place).to_string()))
    }

    fn happening(&mut self, event: &Event) -> io::Result<()> {
        match self.happenings.len() < HAPPENINGS_MAX {
            true => self.happenings.push(serde_json::to_value(event)?),
            false => self.left_out += 1,
        }
        Ok(())
    }

    fn close(&mut self, findings: &Findings) -> io::Result<()> {
        let begin = if self.calls == 0 { "{\"calls\":[" } else { "\n" };
        write!(self.out, "{begin}]")?;
        let verdict = match &findings.unreadable {
            Some(_) => "unreadable",
            None if findings.is_whole() => "whole",
            None => "not_whole",
        };
        let counts = findings.counts();
        let faults: Vec<Value> = findings.faults.iter().map(fault).collect();
        let unreadable = findings.unreadable.as_ref().map(|(place, why)| at(place, json!({"why": why})));
        let rest = [
            ("happenings", std::mem::take(&mut self.happenings).into()),
            ("happenings_left_out", self.left_out.into()),
            ("faults", faults.into()),
            ("faults_left_out", findings.left_out.into()),
            ("unreadable", unreadable.unwrap_or_default()),
            ("unknown_kinds", findings.unknown_kinds.into()),
            ("has_end", findings.has_end.into()),
            ("cut_off", findings.cut_off.into()),
            ("events", counts.events.into()),
            ("calls_received", counts.calls.into()),
            ("sessions", counts.sessions.into()),
            ("engines", counts.engines.into()),
            ("verdict", verdict.into()),
        ];
        for (name, value) in rest {
            write!(self.out, ",\n\"{name}\":{}", json_text(&value.to_string()))?;
        }
        writeln!(self.out, "}}")?;
        self.out.flush()
    }
}

fn fault(finding: &Finding) -> Value {
    let fields = json!({
        "session": finding.session,
        "call_id": finding.call_id,
        "what": finding.what,
    });
    at(&finding.place, fields)
}

/// These fields, after those of the place.
fn at(place: &Place, fields: Value) -> Value {
    let mut all = Map::new();
    all.extend(place.file.as_ref().map(|file| ("file".to_owned(), file.as_str().into())));
    all.insert("line".to_owned(), place.line.into());
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    all.into()
}

fn call(story: &Story, place: &Place) -> Value {
    let mut call = json!({
        "wall_ms": story.wall_ms,
        "session": story.session,
        "agent": story.agent,
        "turn": story.turn,
        "batch": story.batch,
        "index": story.index,
        "call_id": story.call_id(),
        "tool_name": story.tool_name,
        "digest": story.digest,
        "decision": decision(story),
        "attempts": story.attempts,
    });
    call["outcome"] = story.end.as_ref().map_or(Value::Null, outcome);
    at(place, call)
}

fn decision(story: &Story) -> Value {
    let decision = story.decision();
    let mut fields = Map::new();
    fields.insert("what".to_owned(), decision.name().into());
    if let Decision::Refused(code)
    | Decision::Denied(code)
    | Decision::Invalid(code)
    | Decision::NotRun(code) = decision
    {
        fields.insert("code".to_owned(), code.code().into());
    }
    if let Decision::Approved(by) = decision {
        fields.insert("by".to_owned(), json!(by));
    }
    if let Decision::Shared(dedupe) = decision {
        fields.insert("dedupe".to_owned(), json!(dedupe));
    }
    if let Some(request) = story.request() {
        fields.insert("request".to_owned(), request.to_string().into());
    }
    for (name, text) in [("who", story.who()), ("reason", story.reason())] {
        if let Some(text) = text {
            fields.insert(name.to_owned(), text.into());
        }
    }
    if story.edited() {
        fields.insert("edited".to_owned(), true.into());
    }
    if let Some(version) = story.policy_version() {
        fields.insert("policy_version".to_owned(), version.into());
    }
    fields.into()
}

fn outcome(end: &End) -> Value {
    match end {
        End::Ok { bytes, dedupe, queue_ms, duration_ms, cancel_requested } => json!({
            "ok": true,
            "bytes": bytes,
            "dedupe": dedupe,
            "queue_ms": queue_ms,
            "duration_ms": duration_ms,
            "cancel_requested": cancel_requested,
        }),
        End::Suspended => json!({"ok": false, "suspended": true}),
        End::Failed(failure) => json!({
            "ok": false,
            "code": failure.code.code(),
            "class": failure.old_class.as_str(),
            "slug": Slug::from(failure.code).as_str(),
            "message": failure.message,
            "effect": failure.outcome,
            "reason": failure.reason,
            "dedupe": failure.dedupe,
            "queue_ms": failure.queue_ms,
            "duration_ms": failure.duration_ms,
        }),
    }
}
