//! What is found to be wrong with a log, and how much there is of it.

use toolyard::{
    Event, EventKind,
    event::{DrainStep, LogChecker, LogCounts, LogFault, Stranger},
};

/// As many faults are listed; what is over is counted.
const LISTED_MAX: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    checker: LogChecker,
    /// The faults, with their lines.
    pub(super) faults: Vec<Finding>,
    /// Faults that are not listed.
    pub(super) more: u64,
    /// Events of kinds that are not known, and the first of them.
    pub(super) strangers: u64,
    pub(super) first_stranger: Option<(usize, String)>,
    /// The line that is no event, where reading ended, and why.
    pub(super) unreadable: Option<(usize, String)>,
    /// Whether the engine told of its end.
    pub(super) has_end: bool,
}

/// A fault with its line.
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

    /// An event of a kind that this program does not know.
    pub(super) fn pass_over(&mut self, line: usize, stranger: &Stranger) {
        self.strangers += 1;
        self.first_stranger.get_or_insert_with(|| (line, stranger.name.clone()));
        let faults = self.checker.pass_over(line as u64, stranger);
        faults.into_iter().for_each(|fault| self.found(&fault));
    }

    /// The last line breaks off.
    pub(super) fn torn(&mut self, line: usize) {
        let what = "the last line breaks off: the program that wrote it was stopped meanwhile".to_owned();
        self.list(Finding { line: line as u64, session: None, call_id: None, what });
    }

    /// Nothing follows. Where a line could not be read, nobody knows what is open.
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

    /// How many faults there are.
    pub(super) fn number(&self) -> u64 {
        self.faults.len() as u64 + self.more
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
            false => self.more += 1,
        }
    }
}
