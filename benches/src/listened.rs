//! An engine with a subscriber that reads its events while it works.

use crate::{
    contender::{Contender, Work},
    yard::Yard,
};
use std::sync::Arc;

/// A contender whose events are read concurrently with its calls.
pub(crate) struct Listened {
    yard: Arc<Yard>,
}

impl Listened {
    pub(crate) fn new(yard: Yard) -> Self {
        Self { yard: Arc::new(yard) }
    }
}

impl Contender for Listened {
    fn name(&self) -> &str {
        self.yard.name()
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let work = self.yard.work(calls, batches);
        let yard = self.yard.clone();
        Box::pin(async move {
            let mut events = yard.engine().subscribe();
            let reading = tokio::spawn(async move {
                while let Some(received) = events.next().await {
                    std::hint::black_box(received);
                }
            });
            work.await;
            reading.abort();
            // The reader must be gone before the next contender is measured.
            drop(reading.await);
        })
    }
}
