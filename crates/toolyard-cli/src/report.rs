//! The report of a run: a timeline and tables for people, one JSON document for programs.
//!
//! ```text
//!   events ─► Recorder ─┬─► AtOnce                               how many calls ran at once
//!   outcomes ───────────┴─► Timeline ─┬─► waits ─► text, json    of one batch, or of the slowest turn of many
//!                                     ├─► Tools, Slowest         of all calls
//!                                     └─► Episodes
//!   outcomes without output ─► Notes                             one line for those that are alike
//! ```
//!
//! What is kept is bounded however long the run is: one timeline, counters for at most 100 tools, ten slow calls, 100
//! kinds of failures, a few numbers for each of 100 000 episodes (KT-11).

mod at_once;
mod bar;
mod breakers;
mod episodes;
mod json;
mod layout;
mod notes;
mod rows;
mod scale;
mod slowest;
mod spread;
mod text;
mod timeline;
mod times;
mod tools;
mod waits;

pub(crate) use breakers::BreakerChanges;
pub(crate) use notes::Notes;
pub(crate) use timeline::Timeline;
pub(crate) use times::Recorder;
pub(crate) use waits::Widths;

use crate::{
    cli::ReportKind,
    display::{Brief, clip, count, fit, json_text},
    exit::Exit,
};
use at_once::AtOnce;
use episodes::Episodes;
use serde_json::{Value, json};
use slowest::Slowest;
use std::{sync::Arc, time::Duration};
use tools::{Tools, per_second, rate_text};

/// The data gathered during a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Calls without output.
    pub(crate) notes: Notes,
    /// State changes of breakers.
    pub(crate) breaker_changes: BreakerChanges,
    /// How many calls ran at once.
    pub(crate) at_once: AtOnce,
    widths: Widths,
    /// Whether calls run one by one.
    sequential: bool,
    totals: Totals,
    tools: Tools,
    slowest: Slowest,
    episodes: Option<Episodes>,
    /// The only batch, or the slowest turn and its position.
    shown: Option<(Option<Turn>, Timeline)>,
}

/// A turn of an episode.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// The episode's id.
    pub(crate) episode: Arc<str>,
    /// Its place among the episodes of this run, from 0.
    pub(crate) place: u64,
    /// The turn, from 0.
    pub(crate) turn: usize,
}

#[derive(Debug, Default)]
struct Totals {
    turns: u64,
    runs: u64,
    calls: u64,
    failed: u64,
    /// From the first batch to the last result, since the engine was built.
    period: Option<(Duration, Duration)>,
    /// The sum of the calls' run times.
    run_times: Duration,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(widths: Widths, sequential: bool) -> Self {
        Self {
            notes: Notes::default(),
            breaker_changes: BreakerChanges::default(),
            at_once: AtOnce::default(),
            widths,
            sequential,
            totals: Totals::default(),
            tools: Tools::default(),
            slowest: Slowest::default(),
            episodes: None,
            shown: None,
        }
    }

    /// What follows are turns of episodes. So many, with so many turns, are kept from an earlier run.
    pub(crate) fn begin_episodes(&mut self, kept: u64, turns: u64) {
        self.episodes = Some(Episodes::after(kept, turns));
    }

    /// The episode at this place has ended.
    pub(crate) fn end_episode(&mut self, place: u64) {
        self.episodes.iter_mut().for_each(|episodes| episodes.end(place));
    }

    /// Adds a batch: a turn of an episode, or the only one.
    pub(crate) fn add(&mut self, turn: Option<Turn>, timeline: Timeline) {
        let totals = &mut self.totals;
        totals.turns += 1;
        totals.runs += u64::from(timeline.runs());
        totals.calls += timeline.spans.len() as u64;
        totals.failed += timeline.failed() as u64;
        totals.add_period(&timeline);
        totals.run_times += timeline.sum_of_run_times();
        for span in &timeline.spans {
            self.tools.add(span);
            self.slowest.add(turn.as_ref(), span);
        }
        if let (Some(episodes), Some(turn)) = (&mut self.episodes, &turn) {
            episodes.add(turn, &timeline);
        }
        let slowest = self.shown.as_ref().map(|(_, timeline)| timeline.wall());
        if slowest.is_none_or(|slowest| timeline.wall() > slowest) {
            self.shown = Some((turn, timeline));
        }
    }

    /// Whether any call ended in an error result.
    pub(crate) fn has_failures(&self) -> bool {
        self.totals.failed > 0
    }

    /// Prints the report on standard error, if a batch was added; for programs also if there was nothing left to run.
    pub(crate) fn print(&self, kind: &ReportKind, exit: Exit) {
        let is_kept = self.episodes.as_ref().is_some_and(Episodes::has_kept);
        if self.shown.is_none() && !(is_kept && *kind == ReportKind::Json) {
            return;
        }
        match kind {
            ReportKind::Json => eprintln!("{}", json_text(&format!("{:#}", self.json(exit)))),
            ReportKind::Text => {
                anstream::eprint!("{}", self.text(columns()));
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

    /// The report on lines of at most so many columns, as far as they are of the timeline.
    fn text(&self, columns: usize) -> String {
        let mut text = String::new();
        if let Some((turn, timeline)) = self.shown.as_ref().filter(|(_, timeline)| !timeline.spans.is_empty())
        {
            if let Some(Turn { episode, turn, .. }) = turn {
                let (episode, wall) = (clip(episode, 60), Brief(timeline.wall()));
                let line = format!("the longest turn, {wall}: episode {episode} turn {turn}");
                text += &(fit(&line, columns) + "\n");
            }
            text += &text::draw(timeline, &self.widths, columns);
        }
        text += &self.breaker_changes.text();
        if self.has_tables() {
            text += &self.tools.text(self.totals.elapsed());
            text += &self.slowest.text();
            text += &self.rates_line();
        }
        text + &self.totals_line() + "\n"
    }

    /// Whether there is more than the timeline shows.
    fn has_tables(&self) -> bool {
        self.totals.turns > 1 || self.totals.calls > text::ROWS_MAX as u64
    }

    /// How fast it went.
    fn rates_line(&self) -> String {
        let (elapsed, calls) = (self.totals.elapsed(), self.totals.calls);
        let episodes = match &self.episodes {
            Some(episodes) => format!(", {} episodes/s", rate_text(episodes.ended(), elapsed)),
            None => String::new(),
        };
        format!("{} calls/s{episodes}; {}\n", rate_text(calls, elapsed), self.at_once.text(elapsed))
    }

    fn totals_line(&self) -> String {
        let Totals { turns, runs, calls, failed, run_times, .. } = self.totals;
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let before = match self.episodes {
            Some(_) => format!("{}: ", count(turns, "turn")),
            None => String::new(),
        };
        let elapsed = self.totals.elapsed();
        before
            + &text::totals(runs, calls, failed, elapsed)
            + &text::one_by_one(self.sequential, elapsed, run_times)
    }

    fn json(&self, exit: Exit) -> Value {
        let Totals { turns, runs, calls, failed, run_times, .. } = self.totals;
        let elapsed = self.totals.elapsed();
        let mut report = json!({
            "runs": runs, "calls": calls, "ok": calls - failed, "failed": failed,
            "wall_ms": json::ms(elapsed), "sum_of_run_times_ms": json::ms(run_times),
            "one_by_one": json::one_by_one(self.sequential, elapsed, run_times),
            "calls_per_s": per_second(calls, elapsed), "at_once": self.at_once.json(elapsed),
            "exit_code": exit.code(),
            "tools": self.tools.json(elapsed), "slowest": self.slowest.json(),
        });
        if let Some(episodes) = &self.episodes {
            report["turns"] = turns.into();
            report["episodes_per_s"] = per_second(episodes.ended(), elapsed).into();
            episodes.add_to(&mut report);
        }
        match &self.shown {
            Some((None, timeline)) => report["timeline"] = json::calls(timeline, &self.widths),
            Some((Some(turn), timeline)) => {
                report["longest_turn"] = json!({
                    "id": turn.episode.as_ref(), "turn": turn.turn, "wall_ms": json::ms(timeline.wall()),
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

/// The width of the terminal that standard error is, or another one.
fn columns() -> usize {
    const ELSEWHERE: usize = 100;
    #[cfg(unix)]
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| size.ws_col);
    #[cfg(not(unix))]
    let columns = console::Term::stderr().size_checked().map(|(_, columns)| columns);
    columns.filter(|columns| *columns > 0).map_or(ELSEWHERE, usize::from)
}

impl Totals {
    fn add_period(&mut self, timeline: &Timeline) {
        let began = timeline.began.unwrap_or_default();
        let (first, last) = self.period.unwrap_or((began, began));
        self.period = Some((first.min(began), last.max(began + timeline.wall())));
    }

    /// The time that has passed, in which turns may have run side by side.
    fn elapsed(&self) -> Duration {
        self.period.map_or(Duration::ZERO, |(first, last)| last.saturating_sub(first))
    }
}

#[cfg(test)]
mod tests;
