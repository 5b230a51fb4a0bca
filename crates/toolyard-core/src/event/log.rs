//! Checks that the events of a log are consistent: nothing is missing, duplicated, out of place or against the rules.
//!
//! ```text
//!   events, in the order of the log ─► LogChecker ─┬─ by life:    an engine.started begins anew
//!                                                  │               positions from 1, each once, none missing
//!                                                  ├─ by session: seq from 1 without a gap, times that do not run back
//!                                                  ├─ by turn: as many ends as turn.ended says
//!                                                  └─ by call: grammar, one end, attempts that count up,
//!                                                              what runs is what was approved (I14)
//! ```
//!
//! A pure state machine. It keeps the calls and turns that are open. For each call that failed after an attempt, whose
//! late result may still come, it keeps 24 bytes until the session closes.

mod call_log;
mod fault;
mod positions;
mod session;
mod turns;

#[cfg(test)]
mod tests;

pub use fault::{LogFault, WhatFault};

use super::{ENGINE_SESSION, Event, EventKind, Stranger};
use crate::SessionId;
use positions::Positions;
use session::{SessionLog, Stamp};
use std::collections::BTreeMap;

/// Checks the events of an engine in the order of its log, and reports what is inconsistent. A log may contain several
/// engines one after another: each begins with `engine.started`.
///
/// # Examples
/// ```
/// use toolyard_core::{AgentPath, Event, EventKind, SessionId};
/// use toolyard_core::event::LogChecker;
/// let mut event = Event::new(SessionId::from("s"), AgentPath::root(), EventKind::SessionOpened);
/// (event.seq, event.position) = (2, 2);
/// let mut checker = LogChecker::default();
/// let faults = checker.read(1, &event);
/// assert_eq!(faults[0].to_string(), "session s: event 1 is missing before event 2");
/// assert!(checker.unfinished().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct LogChecker {
    sessions: BTreeMap<SessionId, SessionLog>,
    positions: Positions,
    counts: LogCounts,
}

/// What a log contains, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LogCounts {
    /// Events, including those of unknown kinds.
    pub events: u64,
    /// Calls that arrived.
    pub calls: u64,
    /// Sessions that were opened, without the engine's own.
    pub sessions: u64,
    /// Engines that were started.
    pub engines: u64,
}

impl LogChecker {
    /// Reads the next event and returns the faults that it reveals. `at` is its position, such as its line number.
    pub fn read(&mut self, at: u64, event: &Event) -> Vec<LogFault> {
        self.counts.calls += u64::from(matches!(event.kind, EventKind::Received { .. }));
        let Event { seq, position, wall_ms, mono_us, .. } = *event;
        let stamp = Stamp { at, seq, position, wall_ms, mono_us };
        if matches!(event.kind, EventKind::EngineStarted { .. }) {
            return self.begin();
        }
        let begins = event.kind == EventKind::SessionOpened;
        let (log, mut faults) = self.stamped(&event.session, stamp, begins);
        log.read(at, event, &mut faults);
        in_session(&event.session, faults)
    }

    /// Reads an event of an unknown kind, and checks its number and its times, which every event has.
    pub fn pass_over(&mut self, at: u64, event: &Stranger) -> Vec<LogFault> {
        let Stranger { seq, position, wall_ms, mono_us, .. } = *event;
        let stamp = Stamp { at, seq, position, wall_ms, mono_us };
        let (_, faults) = self.stamped(&event.session, stamp, false);
        in_session(&event.session, faults)
    }

    /// Begins a new life: nothing of the last one goes on. Returns what had not ended in it.
    fn begin(&mut self) -> Vec<LogFault> {
        self.counts.events += 1;
        self.counts.engines += 1;
        let unfinished = self.unfinished();
        self.sessions.clear();
        self.positions = Positions::default();
        unfinished
    }

    /// The calls and turns that have not ended, in the order of their starts, and what is missing beyond what was
    /// reported. At the end of a log each is a fault.
    pub fn unfinished(&self) -> Vec<LogFault> {
        let mut faults = Vec::new();
        for (session, log) in &self.sessions {
            faults.extend(in_session(session, log.open()));
        }
        faults.extend(self.positions.cut());
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    /// What has been read so far, in numbers.
    pub fn counts(&self) -> LogCounts {
        self.counts
    }

    fn stamped(&mut self, session: &SessionId, stamp: Stamp, begins: bool) -> (&mut SessionLog, Found) {
        self.counts.events += 1;
        let is_new = !self.sessions.contains_key(session);
        let log = self.sessions.entry(session.clone()).or_default();
        let (again, mut faults) = log.check_stamp(stamp, begins);
        let stamp_is_whole = faults.is_empty();
        faults.iter().for_each(|(_, _, what)| self.positions.count_missing(what));
        let is_new_position = self.positions.read(stamp.at, stamp.position);
        match stamp.position {
            0 => faults.push((stamp.at, None, WhatFault::NoPosition)),
            position if !is_new_position && stamp_is_whole => {
                faults.push((stamp.at, None, WhatFault::Position(position)));
            }
            _ => {}
        }
        if (is_new || again) && session.as_str() != ENGINE_SESSION {
            self.counts.sessions += 1;
        }
        (log, faults)
    }
}

/// Faults whose session is added later.
type Found = Vec<(u64, Option<crate::CallId>, WhatFault)>;

fn in_session(session: &SessionId, found: Found) -> Vec<LogFault> {
    let named = |(at, call_id, what)| LogFault { at, session: session.clone(), call_id, what };
    found.into_iter().map(named).collect()
}
