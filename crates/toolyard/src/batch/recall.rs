//! Telling calls that run to stop: all of a batch, one of them, or the handler of a flight. Who says what is in the table
//! of `aside.rs`. A call that waits in its handler has left its task's waker in its slot: whoever tells it wakes that.

use super::aside::Aside;
use super::state::{BatchState, index};
use super::stop::Stop;
use std::{
    sync::atomic::{Ordering, fence},
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;

impl BatchState {
    /// Tells running calls to stop. What they dispatched is told by [`stop`](Self::stop).
    pub(super) fn cancel_running(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        // Either this sees the token or nest that comes to be, or who makes it sees that it is too late.
        fence(Ordering::SeqCst);
        if let Some(token) = self.cancel.get() {
            token.cancel();
        }
        (0..index(self.slots.len())).for_each(|index| self.wake(index));
    }

    /// Tells one call to stop that runs, and leaves the others.
    pub(super) fn recall(&self, index: u32) {
        self.slots[index as usize].make_aside().tell();
        self.wake(index);
    }

    /// The caller of a call that leads a flight or has joined one does not want it any more.
    pub(super) fn call_off(&self, index: u32) {
        self.slots[index as usize].make_aside().call_off();
        self.wake(index);
    }

    /// Tells a call that runs and that is to stop, by its own token and through what it has dispatched.
    pub(crate) fn tell(&self, index: u32) {
        if self.flight(index).is_some() {
            self.slots[index as usize].make_aside().tell();
            self.stop_below(index);
        }
    }

    /// Has the task that waits for a call that runs look whether that is to stop.
    fn wake(&self, index: u32) {
        if let Some(task) = self.slots[index as usize].take_watch() {
            task.wake();
        }
    }

    /// Whether a call that runs is told to stop. If it is not yet, this task is woken when it is.
    pub(crate) fn poll_stop(&self, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        // Before the look: what is told in between is not missed.
        self.slots[index as usize].watch(cx.waker());
        if self.is_to_stop(index) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The token of one call, made now if it is the first time somebody asks.
    pub(super) fn token_of(&self, index: u32) -> &CancellationToken {
        let aside = self.slots[index as usize].make_aside();
        aside.token(|| match aside.flight() {
            None => self.token().child_token(),
            // Others may wait for what it does when its batch is told to stop.
            Some(_) => CancellationToken::new(),
        })
    }

    /// Whether the caller of a call that runs wants it to stop.
    fn is_to_stop(&self, index: u32) -> bool {
        let aside = self.slots[index as usize].aside();
        let unwanted = self.cancelled.load(Ordering::SeqCst) || aside.is_some_and(Aside::is_called_off);
        unwanted && !aside.is_some_and(Aside::is_detached) || aside.is_some_and(Aside::is_told)
    }

    /// The token that tells running calls to stop, made now if it is the first time somebody asks.
    fn token(&self) -> &CancellationToken {
        let token = self.cancel.get_or_init(CancellationToken::new);
        fence(Ordering::SeqCst);
        // Told to stop before there was a token to fire.
        if self.cancelled.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }

    /// Why a call is not to go on, if it is not.
    pub(crate) fn wants_end(&self, index: u32) -> Option<Stop> {
        let stopped = self.stopped.get().copied();
        stopped.or_else(|| self.is_to_stop(index).then_some(Stop::Cancelled))
    }

    /// Why a call that runs has been told to stop, if it has.
    pub(crate) fn cancelled(&self, index: u32) -> Option<Stop> {
        let aside = self.slots[index as usize].aside();
        let is_told = match aside {
            Some(aside) if aside.is_told() => true,
            // One of a flight's callers is not all of them.
            Some(aside) if aside.flight().is_some() => false,
            _ => self.cancelled.load(Ordering::SeqCst),
        };
        is_told.then(|| self.stopped.get().copied().unwrap_or(Stop::Cancelled))
    }
}
