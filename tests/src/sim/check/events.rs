//! I1, I2: every call ends exactly once, events follow the grammar, and `seq` has no gap.

use super::{Seen, Violation};
use crate::{
    event_faults,
    sim::{Fact, program::Index},
};

pub(super) fn check(_: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let events = seen.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) => Some(event.as_ref()),
        _ => None,
    });
    let faults = event_faults(events, seen.is_over).into_iter().map(|fault| Violation::new("I2", fault));
    let strangers =
        seen.strangers.iter().map(|event| Violation::new("I1", format!("nobody's event: {event:?}")));
    faults.chain(strangers).collect()
}
