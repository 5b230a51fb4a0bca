//! The questions that wait to be told of.

use super::note::Note;
use crate::questions::Asked;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tokio::sync::mpsc::{self, error::TrySendError};

/// What became of what was to be told.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    outdated: AtomicU64,
}

/// What became of one question that was to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The receiver has it.
    Delivered,
    /// The receiver did not take it.
    Failed,
    /// Too many waited already.
    Dropped,
    /// It was settled before the receiver had it.
    Outdated,
}

impl Counts {
    pub(super) fn count(&self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Delivered => &self.delivered,
            Outcome::Failed => &self.failed,
            Outcome::Dropped => &self.dropped,
            Outcome::Outdated => &self.outdated,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts with their names.
    pub(crate) fn all(&self) -> [(&'static str, u64); 4] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("delivered", of(&self.delivered)),
            ("failed", of(&self.failed)),
            ("dropped", of(&self.dropped)),
            ("outdated", of(&self.outdated)),
        ]
    }
}

/// Where questions are put that are to be told of.
#[derive(Debug)]
pub(crate) struct Outbox {
    notes: mpsc::Sender<Note>,
    counts: Arc<Counts>,
    /// Whether the last one did not fit: a flood has one warning.
    is_full: AtomicBool,
}

impl Outbox {
    /// An outbox with so many places, and its other end.
    pub(super) fn new(places: usize, counts: Arc<Counts>) -> (Self, mpsc::Receiver<Note>) {
        let (notes, waiting) = mpsc::channel(places);
        (Self { notes, counts, is_full: AtomicBool::new(false) }, waiting)
    }

    /// Puts a question in, or drops it if there is no place. Once the server has ended nobody is told.
    pub(crate) fn put(&self, asked: &Asked) {
        let is_full = match self.notes.try_send(Note::of(asked)) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) => true,
            Err(TrySendError::Closed(_)) => return,
        };
        if is_full {
            self.counts.count(Outcome::Dropped);
        }
        if is_full && !self.is_full.swap(is_full, Ordering::Relaxed) {
            tracing::warn!(
                "nobody is told of a question, because too many wait to be told of already: see \
                 toolyard_notifications_total at /metrics"
            );
        } else if !is_full {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}
