//! Work that goes on when nobody waits for it any more (HT-2).
//!
//! ```text
//!   polled by whoever waits ─┬─ ready ─────────────► done, and no other thread was woken
//!                            └─ dropped before ────► a task of its own
//! ```
//!
//! The memory of what is done is used again by the next one on its thread: a turn takes nearly two kilobytes, and
//! allocators have little at hand that is so large.

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::runtime::Handle;
use tokio_util::sync::ReusableBoxFuture;

/// How many pieces of memory a thread keeps.
const SPARE_MAX: usize = 8;

type Work = ReusableBoxFuture<'static, ()>;

thread_local! {
    /// Of work that is done.
    static SPARE: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
}

fn spare() -> Option<Work> {
    // On a thread that ends there is none.
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}

fn keep(done: Work) {
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(done);
        }
    });
}

/// Work that is done by whoever waits for it, and by a task of its own once that is dropped.
#[must_use = "dropping it lets it go on in a task of its own"]
pub(crate) struct GoesOn(Option<Work>);

impl GoesOn {
    pub(crate) fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(match spare() {
            None => Work::new(work),
            Some(mut spare) => {
                spare.set(work);
                spare
            }
        }))
    }
}

impl Future for GoesOn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Taken out meanwhile: work that panics is not polled again.
        let Some(mut work) = self.0.take() else { return Poll::Ready(()) };
        match work.poll(cx) {
            Poll::Pending => {
                self.0 = Some(work);
                Poll::Pending
            }
            Poll::Ready(()) => {
                keep(work);
                Poll::Ready(())
            }
        }
    }
}

impl Drop for GoesOn {
    fn drop(&mut self) {
        // Without a runtime nothing of it would go on.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };
    use tokio::sync::Notify;

    /// HT-2: what nobody waits for any more goes on, whether or not it had begun.
    #[tokio::test]
    async fn what_is_dropped_goes_on() {
        for has_begun in [false, true] {
            let (go, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let is_done = Arc::new(AtomicBool::new(false));
            let (until, tell, note) = (go.clone(), ended.clone(), is_done.clone());
            let mut work = GoesOn::new(async move {
                until.notified().await;
                note.store(true, Ordering::Relaxed);
                tell.notify_one();
            });
            if has_begun {
                assert!(futures::poll!(&mut work).is_pending());
            }
            drop(work);
            assert!(!is_done.load(Ordering::Relaxed));
            go.notify_one();
            ended.notified().await;
            assert!(is_done.load(Ordering::Relaxed));
        }
    }

    /// What is waited for is done once.
    #[tokio::test]
    async fn what_is_waited_for_is_done_once() {
        let mut count = 0;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        GoesOn::new(async move { tell.send(()).expect("it is received") }).await;
        while told.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, 1);
    }
    /// What is done holds nothing any more, though its memory is kept, of which there is not much.
    #[tokio::test]
    async fn memory_of_what_is_done_is_used_again() {
        let held = Arc::new(());
        let work = || {
            let held = held.clone();
            GoesOn::new(async move { drop(held) })
        };
        let mut all: Vec<_> = (0..=SPARE_MAX).map(|_| work()).collect();
        for work in &mut all {
            work.await;
        }
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX);
        let next = work();
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX - 1);
        next.await;
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX);
    }
}
