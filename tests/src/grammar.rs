//! What must hold of any engine's events.

use std::collections::BTreeMap;
use toolyard::{Event, EventKind, event::CallGrammar};

/// Where events break I1 or I2: every call that came in ends once, by the grammar of OB-1, and no session's `seq`
/// has a gap. Calls that have not ended are faults only when everything `is_over`.
pub fn event_faults<'a>(events: impl IntoIterator<Item = &'a Event>, is_over: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seq = BTreeMap::new();
    let mut calls: BTreeMap<_, CallGrammar> = BTreeMap::new();
    for (at, event) in events.into_iter().enumerate() {
        let (last, opened_at) = seq.entry(event.session.clone()).or_insert((0, at));
        // The name of a session that is gone is free again; one that is opened while it closes goes on counting.
        if event.kind == EventKind::SessionOpened && event.seq == 1 {
            (*last, *opened_at) = (0, at);
        }
        if event.seq != *last + 1 {
            faults.push(format!("seq of session {} has a gap: {} after {last}", event.session, event.seq));
        }
        *last = event.seq;
        if let (Some(batch), Some(index)) = (event.batch, event.index) {
            let call = calls.entry((event.session.clone(), *opened_at, batch, index)).or_default();
            if let Err(error) = call.next(&event.kind) {
                faults.push(format!("{error}: {event:?}"));
            }
        } else if is_of_call(&event.kind) {
            faults.push(format!("an event of no call: {event:?}"));
        }
    }
    let open = calls.into_iter().filter(|(_, grammar)| is_over && !grammar.is_ended());
    faults.extend(open.map(|(call, _)| format!("call {call:?} has not ended")));
    faults
}

fn is_of_call(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Called { .. } | EventKind::Attempt) || kind.is_terminal()
}
