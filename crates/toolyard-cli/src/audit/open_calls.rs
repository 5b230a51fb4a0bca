//! Collects the events of each call into its story.

use super::story::Story;
use std::collections::BTreeMap;
use toolyard::{Event, EventKind, SessionId};

/// The calls that are still open.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    open: BTreeMap<(SessionId, u64, u32), Story>,
}

/// What the account reports.
#[derive(Debug)]
pub(super) enum Entry {
    /// A call that has ended.
    Call(Box<Story>),
    /// An event that belongs to no call, or a late result.
    Happening(Box<Event>),
}

impl OpenCalls {
    /// Reads the next event. Returns nothing for a step of a call that is still open.
    pub(super) fn read(&mut self, line: usize, event: Event) -> Option<Entry> {
        let (Some(batch), Some(index)) = (event.batch, event.index) else {
            return match event.kind {
                EventKind::TurnStarted { .. } | EventKind::TurnEnded { .. } => None,
                _ => Some(Entry::Happening(Box::new(event))),
            };
        };
        if matches!(event.kind, EventKind::LateResult { .. }) {
            return Some(Entry::Happening(Box::new(event)));
        }
        let place = (event.session.clone(), batch, index);
        let is_end = event.kind.is_terminal();
        let story = self.open.entry(place.clone()).or_insert_with(|| Story::new(line, &event));
        story.read(event.kind);
        let ended = is_end.then(|| self.open.remove(&place)).flatten();
        ended.map(|story| Entry::Call(Box::new(story)))
    }

    /// The calls that have not ended, in order of their lines.
    pub(super) fn open(self) -> impl Iterator<Item = Story> {
        let mut open: Vec<_> = self.open.into_values().collect();
        open.sort_by_key(|story| story.line);
        open.into_iter()
    }
}
