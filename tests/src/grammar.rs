//! What must hold of any engine's events.

use toolyard::{Event, event::LogChecker};

/// Where events break I1, I2 or I14: every call that came in ends once, by the grammar of OB-1, what runs is what was
/// approved, and no session's `seq` has a gap. What has not ended is a fault only when everything `is_over`.
pub fn event_faults<'a>(events: impl IntoIterator<Item = &'a Event>, is_over: bool) -> Vec<String> {
    let mut checker = LogChecker::default();
    let events = (1..).zip(events);
    let read: Vec<_> = events.flat_map(|(at, event)| checker.read(at, event)).collect();
    let open = if is_over { checker.unfinished() } else { Vec::new() };
    read.iter().chain(&open).map(|fault| format!("event {}: {fault}", fault.at)).collect()
}
