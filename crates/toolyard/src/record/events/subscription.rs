//! Readers that may miss events.

use super::feed::{Feed, ReaderKey, Taken};
use futures::Stream;
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
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
///
/// It is a [`Stream`] as well (KT-5): the same events, in the same order, whichever of both reads them. Polling it as a
/// stream and dropping what polled loses no event.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use futures::StreamExt as _;
/// use toolyard::{Drain, Engine, Received};
/// let engine = Engine::builder().build().await.unwrap();
/// let events = engine.subscribe();
/// engine.session("demo");
/// engine.shutdown(Drain::default()).await;
/// let opened = events.filter(|received| {
///     let is_opened = matches!(received, Received::Event(event) if event.kind.name() == "session.opened");
///     async move { is_opened }
/// });
/// assert_eq!(opened.count().await, 1); // ends when the engine has shut down
/// # }
/// ```
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
        poll_fn(|cx| self.poll_received(cx)).await
    }

    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        // So that a task which reads on and on lets others have their turn.
        let turn = ready!(coop::poll_proceed(cx));
        let received = match self.taken.pop_front() {
            Some(event) => Some(Received::Event(event)),
            None => ready!(self.feed.poll_read(self.key, &mut self.taken, cx)),
        };
        turn.made_progress();
        Poll::Ready(received)
    }

    /// The next event, if there already is one.
    pub fn try_next(&mut self) -> Option<Received> {
        let taken = self.taken.pop_front().map(Received::Event);
        taken.or_else(|| self.feed.try_read(self.key, &mut self.taken))
    }
}

impl Stream for Subscription {
    type Item = Received;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        self.get_mut().poll_received(cx)
    }
}
