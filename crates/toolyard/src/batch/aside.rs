//! What few calls have: calls of their own, a cancel token, a flight. In an allocation that the others do without.
//!
//! Who wants a call to stop, and who is told:
//!
//! | | said by | means |
//! |---|---|---|
//! | `BatchState::stopped` | a stop of the batch | what has not started ends; says why |
//! | `BatchState::cancelled` | a stop that reaches what runs | the batch's callers want no more |
//! | `called_off` | a cancel of this call, which is on a flight | its caller wants no more |
//! | `told` | whoever ends the handler | the handler is to stop: its token fires |
//! | `detached` | its attempt | it has its result, and the handler goes on for others |
//!
//! Without a flight the first three lead to `told`; on a flight they detach the call while others wait.

use super::flight::Flight;
use super::ledger::{Runs, Started};
use super::shown::Streamed;
use crate::nesting::Nest;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering, fence},
};
use tokio_util::sync::CancellationToken;
use toolyard_core::Grant;

/// What a call has beside its slot.
#[derive(Default)]
pub(super) struct Aside {
    /// What its handler holds while it awaits calls of its own; made by the first of them.
    pub(super) nest: OnceLock<Box<Nest>>,
    /// Fires when the call is to stop; made when its handler asks for it.
    token: OnceLock<CancellationToken>,
    /// The flight that it leads or has joined.
    flight: OnceLock<Arc<Flight>>,
    /// What a policy grants that came after the one which let it through.
    grant: OnceLock<Grant>,
    /// Whether this call, and not its batch, was told to stop.
    told: AtomicBool,
    /// Whether its caller, and not its batch, wants no more of the flight that it leads or has joined.
    called_off: AtomicBool,
    /// Whether it has ended while the flight in its slot goes on.
    detached: AtomicBool,
    /// What its handler streams and has not been shown yet, where secrets are looked for.
    streamed: Mutex<Option<Box<Streamed>>>,
    /// What its handler has that goes on so, until it is over.
    goes_on: Mutex<Option<Runs>>,
    /// Its span, while somebody listens and its handler runs.
    span: Mutex<Option<Box<tracing::Span>>>,
}

impl Aside {
    /// Its token, made now by `make` if it is the first time somebody asks.
    pub(super) fn token(&self, make: impl FnOnce() -> CancellationToken) -> &CancellationToken {
        let token = self.token.get_or_init(make);
        fence(Ordering::SeqCst);
        // Told to stop before there was a token to fire.
        if self.is_told() {
            token.cancel();
        }
        token
    }

    /// Tells the call to stop.
    pub(super) fn tell(&self) {
        self.told.store(true, Ordering::SeqCst);
        // Either this sees the token that comes to be, or who makes it sees that it is too late.
        fence(Ordering::SeqCst);
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }

    /// Puts a call on a flight. It has none, or had this one.
    pub(super) fn set_flight(&self, flight: Arc<Flight>) {
        let _ = self.flight.set(flight);
    }

    pub(super) fn flight(&self) -> Option<&Arc<Flight>> {
        self.flight.get()
    }

    /// What a later policy grants, if that is otherwise than what the gate let through.
    pub(super) fn grant(&self) -> Option<&Grant> {
        self.grant.get()
    }

    /// A later policy grants this; `false` when one before it granted otherwise again.
    pub(super) fn regrant(&self, grant: Grant) -> bool {
        *self.grant.get_or_init(|| grant) == grant
    }

    /// The call has ended; its handler goes on for others with what it has.
    pub(super) fn detach(&self, started: Option<Started>) {
        *self.goes_on() = started.map(Runs::from);
        self.detached.store(true, Ordering::SeqCst);
    }

    /// Looks at what a handler has that goes on though its call has ended.
    pub(super) fn while_it_goes_on<T>(&self, look: impl FnOnce(&mut Runs) -> T) -> Option<T> {
        self.goes_on().as_mut().map(look)
    }

    /// The handler is over.
    pub(super) fn has_run(&self) {
        let _over = self.goes_on().take(); // dropped outside of the lock
    }

    fn goes_on(&self) -> MutexGuard<'_, Option<Runs>> {
        self.goes_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the span of its handler, or with `None` forgets it; gives the one before.
    pub(super) fn set_span(&self, span: Option<tracing::Span>) -> Option<Box<tracing::Span>> {
        std::mem::replace(&mut *self.span_now(), span.map(Box::new))
    }

    /// The span of its handler; none where nobody listens, or it does not run.
    pub(super) fn span(&self) -> tracing::Span {
        self.span_now().as_deref().cloned().unwrap_or_else(tracing::Span::none)
    }

    fn span_now(&self) -> MutexGuard<'_, Option<Box<tracing::Span>>> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What its handler streams.
    pub(super) fn streamed(&self) -> MutexGuard<'_, Option<Box<Streamed>>> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::SeqCst)
    }

    /// Its caller wants no more of its flight.
    pub(super) fn call_off(&self) {
        self.called_off.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_called_off(&self) -> bool {
        self.called_off.load(Ordering::SeqCst)
    }

    pub(super) fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }
}
