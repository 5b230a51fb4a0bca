//! Finds the calls that the gate answered for reasons that only the run decides: the policy in force, remembered
//! answers, and breakers. Such a call is answered right after it was received. The routing of one that was refused
//! bypasses the pools; one that found a breaker open keeps its own (CL-2).

use super::handlers::node_of;
use crate::sim::{Entry, Fact, program::AtGate};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{ErrorKind, Event, EventKind};

pub(super) fn at_gate(entries: &[Entry]) -> BTreeMap<u32, AtGate> {
    let events = entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) => Some(event.as_ref()),
        _ => None,
    });
    let (mut known, mut found, mut last) = (BTreeSet::new(), BTreeMap::new(), None);
    for event in events {
        if let Some((node, received)) = last.take()
            && let Some(answer) = answer(received, event)
        {
            found.insert(node, answer);
        }
        if let (EventKind::Received { .. }, Some(node)) = (&event.kind, node_of(event))
            && known.insert(node)
        {
            last = Some((node, event));
        }
    }
    found
}

fn answer(received: &Event, next: &Event) -> Option<AtGate> {
    let same = |event: &Event| (event.session.clone(), event.agent.clone(), event.batch, event.index);
    let code = next.kind.failure().filter(|_| same(received) == same(next))?.code;
    match code {
        ErrorKind::PermissionDenied | ErrorKind::UserDenied => Some(AtGate::Refused),
        ErrorKind::CircuitOpen => Some(AtGate::BreakerOpen),
        _ => None,
    }
}
