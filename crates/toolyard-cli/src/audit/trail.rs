//! Collects the events of each call into its story.

use super::story::Story;
use std::collections::BTreeMap;
use toolyard::{Event, EventKind, SessionId};

/// The calls that are still open.
#[derive(Debug, Default)]
pub(super) struct Trail {
    open: BTreeMap<(SessionId, u64, u32), Story>,
}

/// What an event means for the account.
#[derive(Debug)]
pub(super) enum Seen {
    /// A step of a call that is still open.
    Nothing,
    /// The end of a call.
    Call(Box<Story>),
    /// An event that belongs to no call, or a late result.
    Happening(Box<Event>),
}

impl Trail {
    pub(super) fn read(&mut self, line: usize, event: Event) -> Seen {
        let (Some(batch), Some(index)) = (event.batch, event.index) else {
            return match event.kind {
                EventKind::TurnStarted { .. } | EventKind::TurnEnded { .. } => Seen::Nothing,
                _ => Seen::Happening(Box::new(event)),
            };
        };
        if matches!(event.kind, EventKind::LateResult { .. }) {
            return Seen::Happening(Box::new(event));
        }
        let place = (event.session.clone(), batch, index);
        let is_end = event.kind.is_terminal();
        let story = self.open.entry(place.clone()).or_insert_with(|| Story::new(line, &event));
        story.read(event.kind);
        match is_end.then(|| self.open.remove(&place)).flatten() {
            Some(story) => Seen::Call(Box::new(story)),
            None => Seen::Nothing,
        }
    }

    /// The calls that have not ended, in order of their lines.
    pub(super) fn open(self) -> impl Iterator<Item = Story> {
        let mut open: Vec<_> = self.open.into_values().collect();
        open.sort_by_key(|story| story.line);
        open.into_iter()
    }
}
