//! Finds the calls that the gate refused for reasons that only the run decides: the policy in force and remembered
//! answers. Such a call is refused right after it was received, and its routing bypasses the pools (CL-2).

use crate::sim::{Entry, Fact};
use std::collections::BTreeSet;
use toolyard::{ErrorKind, Event, EventKind};

pub(super) fn refused(entries: &[Entry]) -> BTreeSet<u32> {
    let events = entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) => Some(event.as_ref()),
        _ => None,
    });
    let (mut known, mut refused, mut last) = (BTreeSet::new(), BTreeSet::new(), None);
    for event in events {
        if let Some((node, received)) = last.take()
            && is_refusal(received, event)
        {
            refused.insert(node);
        }
        if let (EventKind::Received { .. }, Some(node)) = (&event.kind, node_of(event))
            && known.insert(node)
        {
            last = Some((node, event));
        }
    }
    refused
}

fn is_refusal(received: &Event, next: &Event) -> bool {
    let same = |event: &Event| (event.session.clone(), event.agent.clone(), event.batch, event.index);
    let code = next.kind.failure().map(|failure| failure.code);
    let is_no = matches!(code, Some(ErrorKind::PermissionDenied | ErrorKind::UserDenied));
    is_no && same(received) == same(next)
}

/// The number of an event's call. Twins come after the call whose id they share.
fn node_of(event: &Event) -> Option<u32> {
    event.call_id.as_ref()?.as_str().strip_prefix('c')?.parse().ok()
}
