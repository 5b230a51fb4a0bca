//! Telling running calls to stop: all of a batch, one of them, or the handler of a flight. The table in `rare.rs`
//! lists the flags. The task that drives a running call leaves its waker in the call's slot; setting a flag wakes it.

use crate::call::{batch::BatchState, in_flight::InFlight, rare::Rare, run::index, stop::Stop};
use std::{
    sync::atomic::{Ordering, fence},
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;

impl BatchState {
    /// Tells running calls to stop. What they dispatched is up to [`stop`](Self::stop).
    pub(crate) fn cancel_running(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        // Either this sees a token or parking that is created concurrently, or its creator sees `cancelled`.
        fence(Ordering::SeqCst);
        if let Some(token) = self.cancel.get() {
            token.cancel();
        }
        (0..index(self.slots.len())).for_each(|index| self.at(index).wake());
    }

    /// The token that tells all running calls to stop, created on first use.
    fn token(&self) -> &CancellationToken {
        let token = self.cancel.get_or_init(CancellationToken::new);
        fence(Ordering::SeqCst);
        // Cancelled before there was a token to fire.
        if self.cancelled.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }
}

impl<'a> InFlight<'a> {
    /// Tells one running call to stop, and no other.
    pub(crate) fn tell_to_stop(self) {
        self.slot().make_rare().request_stop();
        self.wake();
    }

    /// Notes that the caller of a call on a flight no longer wants its result.
    pub(crate) fn mark_call_cancelled(self) {
        self.slot().make_rare().mark_call_cancelled();
        self.wake();
    }

    /// Fires the token of a running call that is to stop, and stops what it dispatched. Only calls on a flight need
    /// this: for the others both have been done.
    pub(crate) fn request_stop(self) {
        if self.flight().is_some() {
            self.slot().make_rare().request_stop();
            self.stop_below();
        }
    }

    /// Wakes the task that drives a running call, to check whether the call is to stop.
    pub(crate) fn wake(self) {
        if let Some(task) = self.slot().take_waker() {
            task.wake();
        }
    }

    /// Ready if a running call is to stop; otherwise the task is woken when it is.
    pub(crate) fn poll_stop(self, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the check, so that no stop is missed in between.
        self.slot().register_waker(cx.waker());
        if self.is_to_stop() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The token of one call, created on first use.
    pub(crate) fn token(self) -> &'a CancellationToken {
        let rare = self.slot().make_rare();
        rare.token(|| match self.flight() {
            None => self.batch.token().child_token(),
            // Not a child of the batch's token: others may wait for its result when its batch is cancelled.
            Some(_) => CancellationToken::new(),
        })
    }

    /// Whether a running call is to stop, or to leave its flight.
    fn is_to_stop(self) -> bool {
        let rare = self.slot().rare();
        let unwanted =
            self.batch.cancelled.load(Ordering::SeqCst) || rare.is_some_and(Rare::is_call_cancelled);
        unwanted && !rare.is_some_and(Rare::is_detached) || rare.is_some_and(Rare::is_stop_requested)
    }

    /// Why a call must not go on, if it must not.
    pub(crate) fn stop_reason(self) -> Option<Stop> {
        let stopped = self.batch.stopped.get().copied();
        stopped.or_else(|| self.is_to_stop().then_some(Stop::Cancelled))
    }

    /// Why the handler of a running call has been told to stop, if it has.
    pub(crate) fn cancelled(self) -> Option<Stop> {
        let rare = self.slot().rare();
        let is_stop_requested = match rare {
            Some(rare) if rare.is_stop_requested() => true,
            // The batch is only one of the flight's callers.
            _ if self.flight().is_some() => false,
            _ => self.batch.cancelled.load(Ordering::SeqCst),
        };
        is_stop_requested.then(|| self.batch.stopped.get().copied().unwrap_or(Stop::Cancelled))
    }
}
