//! The report of a run: a timeline for people, one JSON document for programs.
//!
//! ```text
//!   events ─► Recorder ─┐
//!   outcomes ───────────┴─► Timeline ─► waits ─► text, json      of one batch, or of the slowest turn of many
//!   outcomes without output ─► Notes                             one line each
//! ```

mod breakers;
mod json;
mod notes;
mod text;
mod timeline;
mod times;
mod waits;

pub(crate) use breakers::BreakerChanges;
pub(crate) use notes::Notes;
pub(crate) use timeline::Timeline;
pub(crate) use times::Recorder;
pub(crate) use waits::Widths;

use crate::{
    cli::ReportKind,
    display::{Brief, clip, count, json_text},
    exit::Exit,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The data gathered during a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Calls without output.
    pub(crate) notes: Notes,
    /// State changes of breakers.
    pub(crate) breaker_changes: BreakerChanges,
    widths: Widths,
    totals: Totals,
    /// The only batch, or the slowest turn and its position.
    shown: Option<(Option<Turn>, Timeline)>,
}

/// A turn of an episode.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// The episode's id.
    pub(crate) episode: String,
    /// The turn, from 0.
    pub(crate) turn: usize,
}

#[derive(Debug, Default)]
struct Totals {
    turns: u64,
    runs: u64,
    calls: u64,
    failed: u64,
    wall: Duration,
    /// The sum of the calls' run times.
    run_times: Duration,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(widths: Widths) -> Self {
        Self {
            notes: Notes::default(),
            breaker_changes: BreakerChanges::default(),
            widths,
            totals: Totals::default(),
            shown: None,
        }
    }

    /// Adds a batch: a turn of an episode, or the only one.
    pub(crate) fn add(&mut self, turn: Option<Turn>, timeline: Timeline) {
        let totals = &mut self.totals;
        totals.turns += 1;
        totals.runs += u64::from(timeline.runs());
        totals.calls += timeline.spans.len() as u64;
        totals.failed += timeline.failed() as u64;
        totals.wall += timeline.wall();
        totals.run_times += timeline.sum_of_run_times();
        let slowest = self.shown.as_ref().map(|(_, timeline)| timeline.wall());
        if slowest.is_none_or(|slowest| timeline.wall() > slowest) {
            self.shown = Some((turn, timeline));
        }
    }

    /// The result of the calls.
    pub(crate) fn exit(&self) -> Exit {
        if self.totals.failed > 0 { Exit::CallFailed } else { Exit::Ok }
    }

    /// Prints the report on standard error, if a batch was added.
    pub(crate) fn print(&self, kind: &ReportKind, exit: Exit) {
        if self.shown.is_none() {
            return;
        }
        match kind {
            ReportKind::Json => eprintln!("{}", json_text(&format!("{:#}", self.json(exit)))),
            ReportKind::Text => {
                anstream::eprint!("{}", self.text());
                self.print_notes();
            }
            ReportKind::Html(_) => {
                anstream::eprintln!("{}", self.totals_line());
                self.print_notes();
            }
            ReportKind::None => self.print_notes(),
        }
    }

    fn print_notes(&self) {
        for line in self.notes.lines() {
            anstream::eprintln!("toolyard: {line}");
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some((turn, timeline)) = self.shown.as_ref().filter(|(_, timeline)| !timeline.spans.is_empty())
        {
            if let Some(Turn { episode, turn }) = turn {
                let (episode, wall) = (clip(episode, 60), Brief(timeline.wall()));
                text += &format!("the longest turn, {wall}: episode {episode} turn {turn}\n");
            }
            text += &text::draw(timeline, &self.widths);
        }
        text += &self.breaker_changes.text();
        text + &self.totals_line() + "\n"
    }

    fn totals_line(&self) -> String {
        let Totals { turns, runs, calls, failed, wall, run_times } = self.totals;
        let has_turns = self.shown.as_ref().is_some_and(|(turn, _)| turn.is_some());
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let before = if has_turns { format!("{}: ", count(turns, "turn")) } else { String::new() };
        before + &text::totals(runs, calls, failed, wall, run_times)
    }

    fn json(&self, exit: Exit) -> Value {
        let Totals { turns, runs, calls, failed, wall, run_times } = self.totals;
        let mut report = json!({
            "runs": runs, "calls": calls, "ok": calls - failed, "failed": failed,
            "wall_ms": json::ms(wall), "sum_of_run_times_ms": json::ms(run_times),
            "exit_code": exit.code(),
        });
        match &self.shown {
            Some((None, timeline)) => report["timeline"] = json::calls(timeline, &self.widths),
            Some((Some(turn), timeline)) => {
                report["turns"] = turns.into();
                report["longest_turn"] = json!({
                    "id": turn.episode, "turn": turn.turn, "wall_ms": json::ms(timeline.wall()),
                    "timeline": json::calls(timeline, &self.widths),
                });
            }
            None => {}
        }
        report["breakers"] = self.breaker_changes.json();
        report["notes"] = self.notes.json();
        report
    }
}

#[cfg(test)]
mod tests;
