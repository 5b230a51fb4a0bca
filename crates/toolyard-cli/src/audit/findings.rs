//! The findings: the faults of a log, and counts of its events.

use super::places::{Place, Places};
use toolyard::{
    Event, EventKind,
    event::{DrainStep, LogChecker, LogCounts, LogFault, Stranger},
};

/// The number of faults that are listed; any others are only counted.
const LISTED_MAX: usize = 1000;

/// The findings of an audit.
#[derive(Debug, Default)]
pub(super) struct Findings {
    checker: LogChecker,
    pub(super) places: Places,
    /// The faults, with their lines.
    pub(super) faults: Vec<Finding>,
    /// Number of faults that are not listed.
    pub(super) left_out: u64,
    /// Number of events of unknown kinds, and the first of them.
    pub(super) unknown_kinds: u64,
    pub(super) first_unknown: Option<(Place, String)>,
    /// The line that could not be read, at which reading stopped, and why.
    pub(super) unreadable: Option<(Place, String)>,
    /// Whether the log contains the end of its last engine.
    pub(super) has_end: bool,
    /// How many engines before that have no end.
    pub(super) cut_off: u64,
}

/// A fault and its line.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) place: Place,
    pub(super) session: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) what: String,
}

impl Findings {
    pub(super) fn of(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    pub(super) fn read(&mut self, line: usize, event: &Event) {
        if matches!(event.kind, EventKind::EngineStarted { .. }) && self.counts().events > 0 {
            self.cut_off += u64::from(!self.has_end);
            self.has_end = false;
        }
        self.has_end |= event.kind == EventKind::EngineDrain { step: DrainStep::Stopped };
        let faults = self.checker.read(line as u64, event);
        faults.into_iter().for_each(|fault| self.found(&fault));
    }

    /// Counts an event of a kind that this program does not know.
    pub(super) fn pass_over(&mut self, line: usize, stranger: &Stranger) {
        self.unknown_kinds += 1;
        let place = || self.places.of_line(line);
        self.first_unknown.get_or_insert_with(|| (place(), stranger.name.clone()));
        let faults = self.checker.pass_over(line as u64, stranger);
        faults.into_iter().for_each(|fault| self.found(&fault));
    }

    /// Reports a line that breaks off: the last one, or the last one before the next engine.
    pub(super) fn torn(&mut self, line: usize) {
        let what = "the line breaks off: the program was stopped while writing it".to_owned();
        self.list(Finding { place: self.places.of_line(line), session: None, call_id: None, what });
    }

    /// Ends the log. After an unreadable line it is unknown which calls are open, so none are reported.
    pub(super) fn end(&mut self) {
        if self.unreadable.is_none() {
            let open = self.checker.unfinished();
            open.iter().for_each(|fault| self.found(fault));
        }
    }

    pub(super) fn counts(&self) -> LogCounts {
        self.checker.counts()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.unreadable.is_none()
    }

    /// The number of faults, listed or not.
    pub(super) fn fault_count(&self) -> u64 {
        self.faults.len() as u64 + self.left_out
    }

    fn found(&mut self, fault: &LogFault) {
        self.list(Finding {
            place: self.places.of_line(usize::try_from(fault.at).unwrap_or(usize::MAX)),
            session: Some(fault.session.to_string()),
            call_id: fault.call_id.as_ref().map(ToString::to_string),
            what: fault.what.to_string(),
        });
    }

    fn list(&mut self, finding: Finding) {
        match self.faults.len() < LISTED_MAX {
            true => self.faults.push(finding),
            false => self.left_out += 1,
        }
    }
}
