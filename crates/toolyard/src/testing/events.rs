//! A recorder of events, and what it can be asked.

use crate::record::EventSink;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use toolyard_core::{Event, EventKind, event::LogChecker};

/// Remembers every event of an engine, as a [sink](crate::EngineBuilder::events). Cheap to clone; all clones are the same.
///
/// Calls are named by their ids. Times are those of the engine's clock: a call that takes no time overlaps none and is not
/// known to be before another at that time, so let the tools of a test take some ([`Reply::after`](super::Reply::after)).
#[derive(Debug, Clone, Default)]
pub struct EventRecorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl EventSink for EventRecorder {
    fn accept(&self, event: &Event) {
        self.events.lock().push(event.clone());
    }
}

/// Returns what is inconsistent in a list of events: every received call ends once, following the grammar of OB-1; only
/// what was approved runs; and no session's `seq` has a gap. A call without an end counts only if `is_finished`.
pub fn event_faults<'a>(events: impl IntoIterator<Item = &'a Event>, is_finished: bool) -> Vec<String> {
    let mut checker = LogChecker::default();
    let events = (1..).zip(events);
    let read: Vec<_> = events.flat_map(|(at, event)| checker.read(at, event)).collect();
    let open = if is_finished { checker.unfinished() } else { Vec::new() };
    read.iter().chain(&open).map(|fault| format!("event {}: {fault}", fault.at)).collect()
}

/// When the calls with an id ran, in microseconds.
struct Ran {
    from: u64,
    /// `None` while one of them runs.
    to: Option<u64>,
}

impl EventRecorder {
    /// The events recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    /// The names of the events of the calls with this id, in order.
    pub fn of_call(&self, id: &str) -> Vec<&'static str> {
        self.of(id).iter().map(|event| event.kind.name()).collect()
    }

    /// The ids of the calls, in the order in which they ended.
    pub fn ended(&self) -> Vec<String> {
        let events = self.events.lock();
        let ended = events.iter().filter(|event| event.kind.is_terminal());
        ended.filter_map(|event| event.call_id.as_ref()).map(ToString::to_string).collect()
    }

    /// Checks that the log is consistent and complete: see [`event_faults`]. For the end of a test, when nothing runs.
    ///
    /// # Panics
    /// If it is not; the message has one line for each fault.
    #[track_caller]
    pub fn check(&self) {
        let faults = event_faults(&self.events(), true);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Checks that every call that arrived has exactly one end.
    ///
    /// # Panics
    /// If one has none, or several; the message names it.
    #[track_caller]
    pub fn assert_one_end_per_call(&self) {
        let mut calls: HashMap<_, [usize; 2]> = HashMap::new();
        for event in self.events.lock().iter().filter(|event| event.call_id.is_some()) {
            let place =
                (event.session.clone(), event.agent.clone(), event.batch, event.index, event.call_id.clone());
            let [starts, ends] = calls.entry(place).or_default();
            *starts += usize::from(matches!(event.kind, EventKind::Received { .. }));
            *ends += usize::from(event.kind.is_terminal());
        }
        for ((.., id), [starts, ends]) in calls {
            let id = id.expect("only events of calls were counted");
            assert!(starts == 1 && ends == 1, "call {id} arrived {starts} times and ended {ends} times");
        }
    }

    /// Checks that the calls with the id `first` had ended when those with the id `then` started.
    ///
    /// # Panics
    /// If not, or if one of them has not started.
    #[track_caller]
    pub fn assert_ran_before(&self, first: &str, then: &str) {
        let (before, after) = (self.ran(first), self.ran(then));
        assert!(
            before.to.is_some_and(|to| to <= after.from),
            "call {then} started at {} us, before call {first} had ended{}\n{}",
            after.from,
            before.to.map_or_else(String::new, |to| format!(" at {to} us")),
            self.lines_of(&[first, then]),
        );
    }

    /// Checks that two calls ran at the same time for a while.
    ///
    /// # Panics
    /// If not, or if one of them has not started.
    #[track_caller]
    pub fn assert_overlap(&self, one: &str, other: &str) {
        assert!(
            self.overlap(one, other),
            "calls {one} and {other} did not run at the same time\n{}",
            self.lines_of(&[one, other])
        );
    }

    /// Checks that two calls did not run at the same time.
    ///
    /// # Panics
    /// If they did, or if one of them has not started.
    #[track_caller]
    pub fn assert_no_overlap(&self, one: &str, other: &str) {
        assert!(
            !self.overlap(one, other),
            "calls {one} and {other} ran at the same time\n{}",
            self.lines_of(&[one, other])
        );
    }

    #[track_caller]
    fn overlap(&self, one: &str, other: &str) -> bool {
        let (one, other) = (self.ran(one), self.ran(other));
        let before = |a: &Ran, b: &Ran| b.to.is_none_or(|to| a.from < to);
        before(&one, &other) && before(&other, &one)
    }

    #[track_caller]
    fn ran(&self, id: &str) -> Ran {
        let events = self.of(id);
        let starts = events.iter().filter(|event| matches!(event.kind, EventKind::Called { .. }));
        let ends: Vec<_> = events.iter().filter(|event| event.kind.is_terminal()).collect();
        let Some(from) = starts.map(|event| event.mono_us).min() else {
            panic!("call {id} has not started\n{}", self.lines_of(&[id]))
        };
        let received = events.iter().filter(|event| matches!(event.kind, EventKind::Received { .. })).count();
        let to = ends.iter().map(|event| event.mono_us).max().filter(|_| ends.len() == received);
        Ran { from, to }
    }

    fn of(&self, id: &str) -> Vec<Event> {
        let events = self.events.lock();
        let of = events.iter().filter(|event| event.call_id.as_ref().is_some_and(|call| call.as_str() == id));
        of.cloned().collect()
    }

    fn lines_of(&self, ids: &[&str]) -> String {
        let is_of = |event: &&Event| event.call_id.as_ref().is_some_and(|id| ids.contains(&id.as_str()));
        self.events.lock().iter().filter(is_of).map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}
