//! The entry of one key.

use super::fingerprint::Fingerprint;
use std::{
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};
use tokio::time::Instant;

/// What identifies a key within its tree (ID-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    tool: Arc<str>,
    key: Arc<str>,
}

impl Hash for Name {
    /// By the key alone: few tools of a tree are called with the same one.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Name {
    pub(crate) fn new(tool: Arc<str>, key: Arc<str>) -> Self {
        Self { tool, key }
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }
}

/// A known key.
#[derive(Debug)]
pub(super) struct Entry<F, B> {
    pub(super) fingerprint: Fingerprint,
    /// Whether it leaves a tombstone in the end, as far as is known now: what a mutating call did must not be done
    /// twice.
    pub(super) is_lasting: bool,
    pub(super) state: KeyState<F, B>,
}

/// How far the key's call has come.
#[derive(Debug)]
pub(super) enum KeyState<F, B> {
    /// It is in flight: it runs, or waits to.
    InFlight(F),
    /// It has ended, and its result is kept. Apart, because there may be ten times as many tombstones.
    Retained(Arc<Kept<B>>),
    /// It has run, and nothing else is known.
    Tombstone,
}

/// A kept result, which replays share.
#[derive(Debug)]
pub(crate) struct Kept<B> {
    pub(super) body: B,
    /// When it expires (ID-6).
    pub(super) until: Instant,
    /// The number of its record in the retention order.
    pub(super) number: u64,
}

impl<B> Deref for Kept<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.body
    }
}

/// What a call finds under its key.
#[derive(Debug)]
pub(super) enum Found<'e, F, B> {
    /// The key is known with other arguments or another version.
    Mismatch,
    InFlight(&'e F),
    Replay(&'e Arc<Kept<B>>),
    AlreadyExecuted,
    /// The result has expired and leaves nothing.
    Gone,
}

impl<F, B> Entry<F, B> {
    pub(super) fn in_flight(fingerprint: Fingerprint, mutating: bool, flight: F) -> Self {
        Self { fingerprint, is_lasting: mutating, state: KeyState::InFlight(flight) }
    }

    /// What a call with this fingerprint finds at `now` (ID-2, ID-6).
    pub(super) fn find(&self, fingerprint: Fingerprint, now: Instant) -> Found<'_, F, B> {
        let kept = match &self.state {
            KeyState::Retained(kept) if kept.until > now => Some(kept),
            KeyState::Retained(_) if !self.is_lasting => return Found::Gone,
            _ => None,
        };
        match (&self.state, kept) {
            _ if self.fingerprint != fingerprint => Found::Mismatch,
            (KeyState::InFlight(flight), _) => Found::InFlight(flight),
            (_, Some(kept)) => Found::Replay(kept),
            (_, None) => Found::AlreadyExecuted,
        }
    }

    /// Whether the retention record with this number belongs to it.
    pub(super) fn is_body(&self, number: u64) -> bool {
        matches!(&self.state, KeyState::Retained(kept) if kept.number == number)
    }
}
