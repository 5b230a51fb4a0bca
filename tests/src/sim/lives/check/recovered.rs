//! JR-11: a session that goes on says so first, and with how many turns open.

use super::History;
use crate::sim::{Fact, check::Violation, lives::session_id};
use toolyard::{Event, EventKind};

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, life) in history.lives.iter().enumerate() {
        let built = life.entries.iter().find_map(|entry| match &entry.fact {
            Fact::Built(epoch) => Some(*epoch),
            _ => None,
        });
        for at in 0..life.program.sessions.len() {
            let session = session_id(at);
            let events = life.entries.iter().filter_map(|entry| match &entry.fact {
                Fact::Event(event) if event.session == session => Some(&**event),
                _ => None,
            });
            let events: Vec<&Event> = events.take(2).collect();
            let open = life.open[0].iter().filter(|turn| turn.session == session).count() as u64;
            let says = match events.get(1).map(|event| &event.kind) {
                Some(EventKind::SessionRecovered { epoch, open, .. }) => Some((Some(*epoch), *open)),
                None => continue, // it was not opened, or the life ended here
                Some(_) => None,
            };
            let expected = life.known.contains(&at).then_some((built, open));
            if says != expected {
                let what = format!("life {}: {session} says {says:?}, not {expected:?}", number + 1);
                found.push(Violation::new("JR-11", what));
            }
        }
    }
    found
}
