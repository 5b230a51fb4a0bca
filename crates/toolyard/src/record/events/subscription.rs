//! Readers that may miss events.

use super::feed::{Feed, ReaderKey, Taken};
use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Poll, ready},
};
use tokio::task::coop;
use toolyard_core::Event;

/// An item of a [`Subscription`].
#[derive(Debug, Clone)]
pub enum Received {
    /// The next event.
    Event(Arc<Event>),
    /// The subscriber was too slow and missed this many events. It continues with the oldest event still kept.
    Missed(u64),
}

/// A bounded view of the event stream. A slow reader never slows the engine (OB-3).
pub struct Subscription {
    feed: Arc<Feed>,
    key: ReaderKey,
    taken: Taken,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.leave(self.key);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    pub(super) fn new(feed: Arc<Feed>) -> Self {
        let key = feed.join();
        Self { feed, key, taken: Taken::new() }
    }

    /// Waits for the next event; `None` when the engine has [shut down](crate::engine::Engine::shutdown) or is gone, and every
    /// event was read.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Received> {
        poll_fn(|cx| {
            // So that a task which reads on and on lets others have their turn.
            let turn = ready!(coop::poll_proceed(cx));
            let received = match self.taken.pop_front() {
                Some(event) => Some(Received::Event(event)),
                None => ready!(self.feed.poll_read(self.key, &mut self.taken, cx)),
            };
            turn.made_progress();
            Poll::Ready(received)
        })
        .await
    }

    /// The next event, if there already is one.
    pub fn try_next(&mut self) -> Option<Received> {
        let taken = self.taken.pop_front().map(Received::Event);
        taken.or_else(|| self.feed.try_read(self.key, &mut self.taken))
    }
}
