//! The findings: the faults of a log, and counts of its events.

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
    /// The faults, with their lines.
    pub(super) faults: Vec<Finding>,
    /// Number of faults that are not listed.
    pub(super) left_out: u64,
    /// Number of events of unknown kinds, and the first of them.
    pub(super) unknown_kinds: u64,
    pub(super) first_unknown: Option<(usize, String)>,
    /// The line that could not be read, at which reading stopped, and why.
    pub(super) unreadable: Option<(usize, String)>,
    /// Whether the log contains the engine's end.
    pub(super) has_end: bool,
}

/// A fault and its line.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) line: u64,
    pub(super) session: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) what: String,
}

impl Findings {
    pub(super) fn read(&mut self, line: usize, event: &Event) {
        self.has_end |= event.kind == EventKind::EngineDrain { step: DrainStep::Stopped };
        let faults = self.checker.read(line as u64, event);
        faults.into_iter().for_each(|fault| self.found(&fault));
    }

    /// Counts an event of a kind that this program does not know.
    pub(super) fn pass_over(&mut self, line: usize, stranger: &Stranger) {
        self.unknown_kinds += 1;
        self.first_unknown.get_or_insert_with(|| (line, stranger.name.clone()));
        let faults = self.checker.pass_over(line as u64, stranger);
        faults.into_iter().for_each(|fault| self.found(&fault));
    }

    /// Reports a last line that breaks off.
    pub(super) fn torn(&mut self, line: usize) {
        let what = "the last line breaks off: the program was stopped while writing it".to_owned();
        self.list(Finding { line: line as u64, session: None, call_id: None, what });
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
            line: fault.at,
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
