//! Telling calls that run to stop: all of a batch, one of them, or the handler of a flight. Who says what is in the table
//! of `aside.rs`.

use super::aside::Aside;
use super::state::BatchState;
use super::stop::Stop;
use std::sync::atomic::{Ordering, fence};
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
        self.recalled.notify_waiters();
    }

    /// Tells one call to stop that runs, and leaves the others.
    pub(super) fn recall(&self, index: u32) {
        self.slots[index as usize].make_aside().tell();
        self.recalled.notify_waiters();
    }

    /// The caller of a call that leads a flight or has joined one does not want it any more.
    pub(super) fn call_off(&self, index: u32) {
        self.slots[index as usize].make_aside().call_off();
        self.recalled.notify_waiters();
    }

    /// Tells a call that runs and that is to stop, by its own token and through what it has dispatched.
    pub(crate) fn tell(&self, index: u32) {
        if self.flight(index).is_some() {
            self.slots[index as usize].make_aside().tell();
            self.stop_below(index);
        }
    }

    /// Waits until a call that runs is told to stop.
    pub(crate) async fn told_to_stop(&self, index: u32) {
        loop {
            // Made before the look: what is told in between is not missed.
            let recalled = self.recalled.notified();
            if self.is_to_stop(index) {
                return;
            }
            recalled.await;
        }
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
