//! What is known of one key.

use super::fingerprint::Fingerprint;
use std::sync::Arc;
use tokio::time::Instant;

/// Under what a key is known in its tree (ID-1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    tool: Arc<str>,
    key: Arc<str>,
}

impl Name {
    pub(super) fn new(tool: &Arc<str>, key: &Arc<str>) -> Self {
        Self { tool: tool.clone(), key: key.clone() }
    }
}

/// A key that is known.
#[derive(Debug)]
pub(super) struct Entry<F, B> {
    pub(super) fingerprint: Fingerprint,
    /// Whether a tombstone is left of it in the end, as far as is known: what a mutating call did must not be done
    /// twice.
    pub(super) is_lasting: bool,
    pub(super) state: State<F, B>,
}

/// How far the call of a key is.
#[derive(Debug)]
pub(super) enum State<F, B> {
    /// It runs, or waits to.
    InFlight(F),
    /// It has ended and its result is at hand. In a box: there are ten times as many tombstones.
    Kept(Box<Body<B>>),
    /// It has run, and that is all that is known.
    Tombstone,
}

/// A kept result.
#[derive(Debug)]
pub(super) struct Body<B> {
    pub(super) body: B,
    /// When it is no longer given out (ID-6).
    pub(super) until: Instant,
    /// Which record of the retention tells of it.
    pub(super) number: u64,
}

/// What one who comes with a key finds.
#[derive(Debug)]
pub(super) enum Found<'e, F, B> {
    /// The key is known with other arguments.
    Mismatch,
    InFlight(&'e F),
    Replay(&'e B),
    AlreadyExecuted,
    /// Its time is over and it leaves nothing.
    Gone,
}

impl<F, B> Entry<F, B> {
    pub(super) fn in_flight(fingerprint: Fingerprint, mutating: bool, flight: F) -> Self {
        Self { fingerprint, is_lasting: mutating, state: State::InFlight(flight) }
    }

    /// What one with this fingerprint finds at `now` (ID-2, ID-6).
    pub(super) fn find(&self, fingerprint: Fingerprint, now: Instant) -> Found<'_, F, B> {
        let body = match &self.state {
            State::Kept(body) if body.until > now => Some(&body.body),
            State::Kept(_) if !self.is_lasting => return Found::Gone,
            _ => None,
        };
        match (&self.state, body) {
            _ if self.fingerprint != fingerprint => Found::Mismatch,
            (State::InFlight(flight), _) => Found::InFlight(flight),
            (_, Some(body)) => Found::Replay(body),
            (_, None) => Found::AlreadyExecuted,
        }
    }

    /// Whether the record of this number tells of it.
    pub(super) fn is_body(&self, number: u64) -> bool {
        matches!(&self.state, State::Kept(body) if body.number == number)
    }
}
