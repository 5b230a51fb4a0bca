//! An event sink that records every event and checks the invariants of the event log.

use super::grammar::event_faults;
use parking_lot::Mutex;
use std::sync::Arc;
use toolyard::{Event, EventSink};

/// Records every event of an engine.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl EventSink for Recorder {
    fn accept(&self, event: &Event) {
        self.events.lock().push(event.clone());
    }
}

impl Recorder {
    /// The events recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    /// The names of the events of one call, in order.
    pub fn of_call(&self, id: &str) -> Vec<&'static str> {
        let events = self.events();
        let of = events.iter().filter(|event| event.call_id.as_ref().is_some_and(|call| call.as_str() == id));
        of.map(|event| event.kind.name()).collect()
    }

    /// The ids of the calls, in the order in which they ended.
    pub fn ended(&self) -> Vec<String> {
        let events = self.events();
        let ended = events.iter().filter(|event| event.kind.is_terminal());
        ended.filter_map(|event| event.call_id.as_ref()).map(ToString::to_string).collect()
    }

    /// Checks I1 and I2: every received call ended exactly once, following the grammar of OB-1, and no session's
    /// `seq` has a gap.
    ///
    /// # Panics
    /// If one of the checks fails.
    pub fn check(&self) {
        let faults = event_faults(&self.events(), true);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
