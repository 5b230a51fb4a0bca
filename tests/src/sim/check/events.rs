//! I1, I2: every call ends exactly once, events follow the grammar, and `seq` has no gap.

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
    let faults =
        event_faults(events, traces.is_finished).into_iter().map(|fault| Violation::new("I2", fault));
    let unknown = traces
        .unknown
        .iter()
        .map(|event| Violation::new("I1", format!("event of an unknown call: {event:?}")));
    faults.chain(unknown).collect()
}
