//! I1, I2, SM-9: every call ends exactly once, events follow the grammar, `seq` has no gap, and events are published in
//! the order of their positions.

use super::{Traces, Violation};
use crate::{
    event_faults,
    sim::{Fact, program::Index},
};

pub(super) fn check(_: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let events = traces.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) => Some(event.as_ref()),
        _ => None,
    });
    // On one thread nothing comes between an event's position and its publication.
    let misplaced = (1..).zip(events.clone()).find(|(position, event)| event.position != *position);
    let misplaced = misplaced
        .map(|(position, event)| Violation::new("SM-9", format!("not at position {position}: {event:?}")));
    let faults =
        event_faults(events, traces.is_finished).into_iter().map(|fault| Violation::new("I2", fault));
    let unknown = traces
        .unknown
        .iter()
        .map(|event| Violation::new("I1", format!("event of an unknown call: {event:?}")));
    faults.chain(unknown).chain(misplaced).collect()
}
