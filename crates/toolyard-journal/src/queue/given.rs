//! A record that was given, as whoever waits for it sees it.

use super::Queue;
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
    is_read: bool,
}

impl Given {
    pub(super) fn new(queue: Arc<Queue>, number: u64) -> Self {
        Self { queue, number, is_read: false }
    }
}

impl Future for Given {
    type Output = Result<(), RecordError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_read {
            return Poll::Ready(Err(RecordError::new("it was told before")));
        }
        let told = self.queue.ask(self.number, cx.waker().clone());
        self.is_read = told.is_ready();
        told
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if !self.is_read {
            self.queue.leave(self.number);
        }
    }
}
