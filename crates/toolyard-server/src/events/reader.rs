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

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::time::Duration;
    use tokio::time::timeout;
    use toolyard::{AgentPath, Event, EventKind, SessionId};

    /// How many sessions publish.
    const SESSIONS: u64 = 24;

    /// How many events each of them publishes.
    const EVENTS: u64 = 200;

    /// The position of each event that a reader gets, until it has this many.
    async fn positions(mut reader: Reader, count: u64) -> Vec<u64> {
        let mut positions = Vec::new();
        while (positions.len() as u64) < count {
            match timeout(Duration::from_secs(60), reader.next()).await.expect("what is published is seen") {
                Read::Events(events) => positions.extend(events.iter().map(|event| event.position())),
                Read::Reset(to) => panic!("all of them are kept, but those to {to}"),
            }
        }
        positions
    }

    /// SM-9: readers that wait see every event as it comes, in order, however many sessions publish beside each other.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn readers_miss_nothing() {
        let front = Front::default();
        let reader = |source| Reader::new(front.clone(), source, 0, Vec::new());
        let all = tokio::spawn(positions(reader(Source::All), SESSIONS * EVENTS));
        let name = |number: u64| SessionId::from(format!("s{number}").as_str());
        let each: Vec<_> = (0..SESSIONS)
            .map(|number| tokio::spawn(positions(reader(Source::Session(name(number))), EVENTS)))
            .collect();
        let last = Arc::new(Mutex::new(0));
        let publish = |number| {
            let (front, last) = (front.clone(), last.clone());
            let mut event = Event::new(name(number), AgentPath::root(), EventKind::Attempt);
            tokio::spawn(async move {
                let mut own = Vec::new();
                for _ in 0..EVENTS {
                    event.position = {
                        let mut last = last.lock();
                        *last += 1;
                        *last
                    };
                    front.history().add(&event);
                    own.push(event.position);
                    tokio::task::yield_now().await;
                }
                own
            })
        };
        let published: Vec<_> = (0..SESSIONS).map(publish).collect();
        for (read, published) in each.into_iter().zip(published) {
            assert_eq!(read.await.unwrap(), published.await.unwrap());
        }
        assert_eq!(all.await.unwrap(), (1..=SESSIONS * EVENTS).collect::<Vec<_>>());
    }
}
