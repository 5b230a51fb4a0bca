//! The invariants of any engine's event log.

use toolyard::{Event, event::LogChecker};

/// Returns the violations of I1, I2 and I14 in a list of events.
///
/// Every received call ends once, following the grammar of OB-1; only what was approved runs; and no session's `seq`
/// has a gap. A call without an end counts as a violation only if `is_finished`.
pub fn event_faults<'a>(events: impl IntoIterator<Item = &'a Event>, is_finished: bool) -> Vec<String> {
    let mut checker = LogChecker::default();
    let events = (1..).zip(events);
    let read: Vec<_> = events.flat_map(|(at, event)| checker.read(at, event)).collect();
    let open = if is_finished { checker.unfinished() } else { Vec::new() };
    read.iter().chain(&open).map(|fault| format!("event {}: {fault}", fault.at)).collect()
}
