//! A record that was given, as whoever waits for it sees it.

use super::{Queue, told::Waits};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use toolyard::RecordError;

/// A record that was given: the writer is woken for it when somebody first waits.
pub(super) struct Given {
    queue: Arc<Queue>,
    number: u64,
    waits: Waits,
    is_hurried: bool,
}

impl Given {
    pub(super) fn new(queue: Arc<Queue>, number: u64, waits: Waits) -> Self {
        Self { queue, number, waits, is_hurried: false }
    }
}

impl Future for Given {
    type Output = Result<(), RecordError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = self.waits.poll(cx);
        if told.is_pending() && !self.is_hurried {
            self.is_hurried = true;
            self.queue.hurry(self.number);
        }
        told
    }
}
