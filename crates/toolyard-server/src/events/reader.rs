//! A reader of events, from a position on.

use super::{Kept, history::Source, log::Lost};
use crate::front::Front;
use std::sync::Arc;
use tokio::sync::Notify;

/// Reads events one after another, and is told if it has missed some.
#[derive(Debug)]
pub(crate) struct Reader {
    front: Front,
    source: Source,
    more: Arc<Notify>,
    /// The position of the last event that was read.
    position: u64,
    /// The kinds that are wanted; all if it is empty.
    kinds: Vec<String>,
}

/// What a reader reads next.
#[derive(Debug)]
pub(crate) enum Read {
    /// The next events, in order; some may have been left out since they are of other kinds.
    Events(Vec<Arc<Kept>>),
    /// Some events are kept no longer. Reading goes on after this position.
    Reset(u64),
}

impl Reader {
    /// A reader of what comes after a position.
    pub(crate) fn new(front: Front, source: Source, position: u64, kinds: Vec<String>) -> Self {
        let more = front.history().more(&source);
        Self { front, source, more, position, kinds }
    }

    /// Waits for the next events.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing has been read.
    pub(crate) async fn next(&mut self) -> Read {
        loop {
            let more = self.more.clone();
            let mut more = std::pin::pin!(more.notified());
            // Before looking, so that what comes in between is not missed.
            more.as_mut().enable();
            match self.front.history().after(&self.source, self.position) {
                Err(Lost(to)) => {
                    self.position = to;
                    return Read::Reset(to);
                }
                Ok(events) => {
                    if let Some(last) = events.last() {
                        self.position = last.position();
                        let wanted: Vec<_> = events.into_iter().filter(|event| self.wants(event)).collect();
                        if !wanted.is_empty() {
                            return Read::Events(wanted);
                        }
                        continue;
                    }
                }
            }
            more.await;
        }
    }

    fn wants(&self, event: &Kept) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == event.kind())
    }
}
