//! Takes every event of an engine and checks what must always hold.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use toolyard::{Event, EventKind, EventSink, event::CallGrammar};

/// Takes every event of an engine.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl EventSink for Recorder {
    fn accept(&self, event: &Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }
}

impl Recorder {
    /// The events so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the events of one call, in order.
    pub fn of_call(&self, id: &str) -> Vec<&'static str> {
        let events = self.events();
        let of = events.iter().filter(|event| event.call_id.as_ref().is_some_and(|call| call.as_str() == id));
        of.map(|event| event.kind.name()).collect()
    }

    /// The ids of calls in the order in which they ended.
    pub fn ended(&self) -> Vec<String> {
        let events = self.events();
        let ended = events.iter().filter(|event| event.kind.is_terminal());
        ended.filter_map(|event| event.call_id.as_ref()).map(ToString::to_string).collect()
    }

    /// Checks I1 and I2: every call that came in ended once, by the grammar of OB-1, and no session's `seq`
    /// has a gap.
    ///
    /// # Panics
    /// Where that does not hold.
    pub fn check(&self) {
        let mut seq = BTreeMap::new();
        let mut calls: BTreeMap<_, CallGrammar> = BTreeMap::new();
        for (at, event) in self.events().into_iter().enumerate() {
            let (last, opened_at) = seq.entry(event.session.clone()).or_insert((0, at));
            // The name of a session that is gone is free again; one that is opened while it closes goes on counting.
            if event.kind == EventKind::SessionOpened && event.seq == 1 {
                (*last, *opened_at) = (0, at);
            }
            assert_eq!(event.seq, *last + 1, "seq of session {} has a gap", event.session);
            *last = event.seq;
            if let (Some(batch), Some(index)) = (event.batch, event.index) {
                let call = calls.entry((event.session.clone(), *opened_at, batch, index)).or_default();
                call.next(&event.kind).unwrap_or_else(|error| panic!("{error}: {event:?}"));
            } else {
                let of_call = matches!(event.kind, EventKind::Called { .. } | EventKind::Attempt);
                assert!(!of_call && !event.kind.is_terminal(), "an event of no call: {event:?}");
            }
        }
        for (call, grammar) in calls {
            assert!(grammar.is_ended(), "call {call:?} has not ended");
        }
    }
}
