//! State that only few calls need: nested calls, a cancel token, a span. It has its own allocation, so that a slot stays
//! small.
//!
//! How a call is stopped:
//!
//! | | set by | meaning |
//! |---|---|---|
//! | `BatchState::stopped` | a stop of the batch | calls that have not started end; says why |
//! | `BatchState::cancelled` | a stop that reaches running calls | the batch's callers no longer want its results |
//! | `call_cancelled` | a cancel of this call, which is on a flight | its caller no longer wants the result |
//! | `stop_requested` | whatever ends the handler | the handler must stop: its token fires |
//! | `detached` | its attempt | the call has its result, and the handler goes on for others |
//!
//! Without a flight, `cancelled` or `stop_requested` stops the handler. On a flight, `cancelled` and `call_cancelled`
//! detach the call while others wait for the result, and otherwise lead to `stop_requested`.

use crate::call::{
    life::{RunningCall, Started},
    nested::Parking,
    streamed::Streamed,
};
use parking_lot::{Mutex, MutexGuard};
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering, fence},
};
use tokio_util::sync::CancellationToken;
use toolyard_core::{CallDigest, Confinement, LazyDigest};

/// The part of a call's state that is outside its slot.
#[derive(Default)]
pub(crate) struct Rare {
    /// What its handler holds while it awaits calls of its own; created by the first of them.
    pub(crate) parking: OnceLock<Box<Parking>>,
    /// Fires when the call is cancelled; created when its handler asks for it.
    token: OnceLock<CancellationToken>,
    /// The grant of a policy that came into force after the gate let the call through.
    confinement: OnceLock<Confinement>,
    /// The digest of what runs under a policy that came into force after the gate let the call through.
    digest_anew: Mutex<Option<LazyDigest>>,
    /// Whether this call's handler, and not its whole batch, is told to stop.
    stop_requested: AtomicBool,
    /// Whether the caller of this call, not of its whole batch, no longer wants the result of its flight.
    call_cancelled: AtomicBool,
    /// Whether it has ended while the flight in its slot goes on.
    detached: AtomicBool,
    /// What belongs to its handler.
    handler: Mutex<Handler>,
}

/// What belongs to a call's handler. Every look at it is short, and what leaves it is dropped outside of the lock.
#[derive(Default)]
struct Handler {
    /// Its output that is held back while it is searched for secrets.
    streamed: Option<Box<Streamed>>,
    /// Its permits and its waker, if it goes on after its call has ended.
    detached_run: Option<RunningCall>,
    /// Its span, while it runs and a subscriber listens.
    span: Option<Box<tracing::Span>>,
}

impl Rare {
    /// Its token, created by `make` on first use.
    pub(crate) fn token(&self, make: impl FnOnce() -> CancellationToken) -> &CancellationToken {
        let token = self.token.get_or_init(make);
        fence(Ordering::SeqCst);
        // It was told to stop before there was a token to fire.
        if self.is_stop_requested() {
            token.cancel();
        }
        token
    }

    /// Tells the handler to stop.
    pub(crate) fn request_stop(&self) {
        self.stop_requested.store(true, Ordering::SeqCst);
        // Either this sees a token that is created concurrently, or its creator sees `stop_requested`.
        fence(Ordering::SeqCst);
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }

    /// The grant of a later policy, if it differs from the one at the gate.
    pub(crate) fn confinement(&self) -> Option<&Confinement> {
        self.confinement.get()
    }

    /// Stores the grant of a later policy. Returns `false` if a different one has been stored before.
    pub(crate) fn confine_anew(&self, confinement: Confinement) -> bool {
        *self.confinement.get_or_init(|| confinement) == confinement
    }

    /// The digest of what runs, if a later policy has made it another than at the gate.
    pub(crate) fn digest_anew(&self) -> Option<LazyDigest> {
        self.digest_anew.lock().clone()
    }

    /// Stores the digest of what runs under a later policy.
    pub(crate) fn mark_anew(&self, digest: CallDigest) {
        *self.digest_anew.lock() = Some(digest.into());
    }

    fn handler(&self) -> MutexGuard<'_, Handler> {
        self.handler.lock()
    }

    /// Notes that the call has ended and its handler goes on for others, with what it has started with.
    pub(crate) fn detach(&self, started: Option<Started>) {
        self.handler().detached_run = started.map(RunningCall::from);
        self.detached.store(true, Ordering::SeqCst);
    }

    /// Looks at what a handler has if it goes on after its call has ended.
    pub(crate) fn with_detached_run<T>(&self, look: impl FnOnce(&mut RunningCall) -> T) -> Option<T> {
        self.handler().detached_run.as_mut().map(look)
    }

    /// Whether its handler goes on after its call has ended.
    pub(super) fn has_detached_run(&self) -> bool {
        self.is_detached() && self.handler().detached_run.is_some()
    }

    /// The handler is over.
    pub(crate) fn handler_over(&self) {
        let _over = self.handler().detached_run.take(); // dropped outside of the lock
    }

    /// Sets the span of its handler, or clears it with `None`; returns the previous one.
    pub(crate) fn set_span(&self, span: Option<tracing::Span>) -> Option<Box<tracing::Span>> {
        let span = span.map(Box::new);
        std::mem::replace(&mut self.handler().span, span)
    }

    /// The span of its handler; none if no subscriber listens or the handler does not run.
    pub(crate) fn span(&self) -> tracing::Span {
        self.handler().span.as_deref().cloned().unwrap_or_else(tracing::Span::none)
    }

    /// Takes the handler's output that is held back. Whoever holds the call's life may put it [back](Self::hold_back).
    pub(crate) fn take_streamed(&self) -> Option<Box<Streamed>> {
        self.handler().streamed.take()
    }

    /// Holds back what the handler's output ends with.
    pub(crate) fn hold_back(&self, streamed: Box<Streamed>) {
        self.handler().streamed = Some(streamed);
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::SeqCst)
    }

    /// Notes that its caller no longer wants the result of its flight.
    pub(crate) fn mark_call_cancelled(&self) {
        self.call_cancelled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_call_cancelled(&self) -> bool {
        self.call_cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.stop_requested.load(Ordering::SeqCst)
    }
}
