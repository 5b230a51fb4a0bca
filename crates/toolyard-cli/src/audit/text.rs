//! The account for people.

use super::{
    Account,
    findings::{Finding, Findings},
    moment::{Day, moment},
    places::Place,
    story::{Decision, End, Story},
};
use crate::display::{clip, count, plain};
use std::{
    fmt::Write as _,
    io::{self, Write},
};
use toolyard::{BreakerOf, Dedupe, Event, EventKind, event::SettledBy};

/// How many characters of a digest are shown.
const DIGEST_CHARS: usize = 8;

/// Writes one line per call.
pub(super) struct Text<W> {
    out: W,
    /// The heading of the lines written last.
    heading: Option<(String, Option<u64>, Day)>,
}

impl<W: Write> Text<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, heading: None }
    }

    /// Writes a heading if the next line needs another one.
    fn write_heading(&mut self, session: &str, turn: Option<u64>, wall_ms: u64) -> io::Result<()> {
        let heading = (session.to_owned(), turn, moment(wall_ms).0);
        if self.heading.as_ref() == Some(&heading) {
            return Ok(());
        }
        let turn = turn.map_or_else(String::new, |turn| format!(", turn {turn}"));
        writeln!(self.out, "session {}{turn}, {}", plain(session), heading.2)?;
        self.heading = Some(heading);
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let mut place = format!("  {}", place(&finding.place));
        // Writing to a string does not fail.
        let _ = finding.session.iter().try_for_each(|session| write!(place, ", session {}", plain(session)));
        let _ = finding.call_id.iter().try_for_each(|call| write!(place, ", call {}", plain(call)));
        writeln!(self.out, "{place}: {}", plain(&finding.what))
    }

    fn notes(&mut self, findings: &Findings) -> io::Result<()> {
        if let Some((at, name)) = &findings.first_unknown {
            let events = count(usize::try_from(findings.unknown_kinds).unwrap_or(usize::MAX), "event");
            let (name, place) = (plain(name), place(at));
            writeln!(self.out, "skipped: {events} of unknown kinds, first '{name}' in {place}")?;
        }
        if findings.cut_off > 0 {
            let engines = count(usize::try_from(findings.cut_off).unwrap_or(usize::MAX), "earlier engine");
            writeln!(
                self.out,
                "{engines} without an end: the program was killed, or the log is cut off there"
            )?;
        }
        if !findings.has_end && findings.unreadable.is_none() {
            writeln!(
                self.out,
                "the log has no engine end: the engine still runs, was killed, or the log is cut off"
            )?;
        }
        Ok(())
    }
}

impl<W: Write> Account for Text<W> {
    fn call(&mut self, story: &Story, _: &Place) -> io::Result<()> {
        self.write_heading(story.session.as_str(), story.turn, story.wall_ms)?;
        let time = moment(story.wall_ms).1;
        let agent = agent(story.agent.as_str());
        let (id, tool) = (plain(story.call_id()), plain(story.tool_name.as_deref().unwrap_or("?")));
        let digest = story.digest.map_or_else(String::new, |digest| digest.to_string());
        let digest = digest.get(..DIGEST_CHARS).unwrap_or("-");
        let (decision, outcome) = (decision(story), outcome(story));
        writeln!(self.out, "  {time}  {agent}{id:<8}  {tool:<12}  {digest:<8}  {decision}{outcome}")
    }

    fn happening(&mut self, event: &Event) -> io::Result<()> {
        self.write_heading(event.session.as_str(), event.turn, event.wall_ms)?;
        let (time, agent) = (moment(event.wall_ms).1, agent(event.agent.as_str()));
        writeln!(self.out, "  {time}  {agent}{}", plain(&happening(event)))
    }

    fn close(&mut self, findings: &Findings) -> io::Result<()> {
        let counts = findings.counts();
        let some = |number: u64, noun| count(usize::try_from(number).unwrap_or(usize::MAX), noun);
        let (events, calls) = (some(counts.events, "event"), some(counts.calls, "call"));
        let all = format!("{events}, {calls}, {}", some(counts.sessions, "session"));
        self.notes(findings)?;
        match (&findings.unreadable, findings.fault_count()) {
            (None, 0) => writeln!(self.out, "whole: {all}")?,
            (Some((at, _)), number) => {
                writeln!(
                    self.out,
                    "unreadable from {} on; {} before it: {all}",
                    place(at),
                    some(number, "fault")
                )?;
            }
            (None, number) => writeln!(self.out, "not whole: {} in {all}", some(number, "fault"))?,
        }
        for finding in &findings.faults {
            self.finding(finding)?;
        }
        if findings.left_out > 0 {
            writeln!(self.out, "  and {} more", findings.left_out)?;
        }
        self.out.flush()
    }
}

/// `line 3`, in a log of several parts with its file.
fn place(place: &Place) -> String {
    let file = place.file.as_ref().map_or_else(String::new, |file| format!("{} ", plain(file)));
    format!("{file}line {}", place.line)
}

/// The agent, unless it is the root.
fn agent(path: &str) -> String {
    if path == "root" { String::new() } else { format!("{}  ", plain(path)) }
}

/// How many characters of a name are shown.
const WHO_MAX: usize = 40;

fn decision(story: &Story) -> String {
    let policy = story.policy_version().map_or_else(String::new, |version| format!("policy {version}"));
    let asked =
        story.request().map_or_else(|| "asked".to_owned(), |id| format!("asked (request {})", id.number()));
    let who = |otherwise| clip(story.who().unwrap_or(otherwise), WHO_MAX);
    let edited = if story.edited() { " with other arguments" } else { "" };
    match story.decision() {
        Decision::Allowed => format!("allowed by {policy}"),
        Decision::Remembered => format!("allowed by a remembered answer, {policy}"),
        Decision::Approved(Some(SettledBy::Pattern)) => {
            format!("{asked}, approved by the answer to another question, {policy}")
        }
        Decision::Approved(Some(SettledBy::Shared)) => {
            let with = story.shares().map_or_else(String::new, |id| format!(" {}", id.number()));
            format!("{asked}, approved by the answer to the equal request{with}{edited}, {policy}")
        }
        Decision::Approved(_) => format!("{asked}, approved by {}{edited}, {policy}", who("the approver")),
        Decision::Refused(code) => match story.who() {
            None => format!("{asked}, refused: {code}"),
            Some(_) => format!("{asked}, refused by {}: {code}", who("")),
        },
        Decision::Denied(code) => format!("denied: {code}"),
        Decision::Invalid(code) => format!("invalid: {code}"),
        Decision::NotRun(code) => format!("not run: {code}"),
        Decision::Shared(Dedupe::Replayed) => "replays an earlier result".to_owned(),
        Decision::Shared(Dedupe::Reconciled) => "had done its work before a crash".to_owned(),
        Decision::Shared(_) => "shares the run of another call".to_owned(),
        Decision::Suspended => match story.request() {
            Some(_) => format!("{asked}, suspended by a drain"),
            None => "suspended by a drain".to_owned(),
        },
        Decision::Open => match story.request() {
            Some(_) => asked,
            None => "received".to_owned(),
        },
    }
}

/// The outcome of a call that ran or shares the result of another.
fn outcome(story: &Story) -> String {
    let has_run = story.policy_version().is_some() || matches!(story.decision(), Decision::Shared(_));
    let (what, queue_ms, duration_ms) = match &story.end {
        None => return ": has not ended".to_owned(),
        Some(End::Suspended) => return String::new(),
        Some(End::Failed(_)) if !has_run => return String::new(),
        Some(End::Failed(failure)) => {
            let what = format!("failed with {}, effect {}", failure.code, effect(failure.outcome));
            (what, failure.queue_ms, failure.duration_ms)
        }
        Some(End::Ok { bytes, queue_ms, duration_ms, cancel_requested, .. }) => {
            let cancelled = if *cancel_requested { ", cancelled" } else { "" };
            (format!("ok, {bytes} B{cancelled}"), *queue_ms, *duration_ms)
        }
    };
    let attempts =
        if story.attempts > 1 { format!(" in {} attempts", story.attempts) } else { String::new() };
    let waited = if queue_ms > 0 { format!(", waited {queue_ms} ms") } else { String::new() };
    format!(": {what}{attempts}, {duration_ms} ms{waited}")
}

fn effect(effect: toolyard::Effect) -> &'static str {
    match effect {
        toolyard::Effect::NotStarted => "none",
        toolyard::Effect::Failed => "failed",
        toolyard::Effect::Unknown => "unknown",
    }
}

fn happening(event: &Event) -> String {
    match &event.kind {
        EventKind::SessionOpened => "session opened".to_owned(),
        EventKind::SessionRecovered { interrupted, open, .. } => {
            format!("goes on from before: {open} open turns, {interrupted} calls interrupted")
        }
        EventKind::SessionClosed => "session closed".to_owned(),
        EventKind::TurnCancelled => "turn cancelled".to_owned(),
        EventKind::AgentForked { child } => format!("agent {child} forked"),
        EventKind::AgentJoined { child } => format!("agent {child} joined"),
        EventKind::PolicyChanged { version } => format!("policy {version} is in force"),
        EventKind::PoolResized { class, from, to } => format!("pool {class}: width {from} to {to}"),
        EventKind::ZombiesReleased { tool_name, count } => {
            format!("released what {count} handlers of {tool_name} hold")
        }
        EventKind::EngineStarted { version, .. } => format!("engine started, version {version}"),
        EventKind::EngineDrain { step } => format!("drain: {}", step_text(*step)),
        EventKind::BreakerTransition { from, to, .. } => {
            let of = match BreakerOf::of_event(&event.kind) {
                Some(BreakerOf::Tool(name)) => format!("tool {name}"),
                Some(BreakerOf::Backend(name)) => format!("back-end {name}"),
                Some(BreakerOf::Sandbox(sandbox)) => format!("sandbox {}", sandbox.as_str()),
                None => "?".to_owned(),
            };
            format!("breaker of {of}: {from} to {to}")
        }
        EventKind::LateResult { ok } => {
            let id = event.call_id.as_ref().map_or("?", |id| id.as_str());
            format!("{id}: its handler has ended late, {}", if *ok { "ok" } else { "not ok" })
        }
        other => other.name().to_owned(),
    }
}

fn step_text(step: toolyard::event::DrainStep) -> &'static str {
    use toolyard::event::DrainStep as S;
    match step {
        S::Refuse => "new calls are refused",
        S::ClearQueue => "waiting calls have ended",
        S::Finish => "running calls may finish",
        S::Cancel => "running calls are cancelled",
        S::Abandon => "calls that did not stop are abandoned",
        S::Stopped => "stopped",
    }
}
