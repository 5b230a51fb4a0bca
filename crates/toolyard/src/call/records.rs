//! What a session and a batch have left with the recorder, and what waits for that.

use crate::record::{Foundation, Past, Pending, SessionTerms};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// What a batch has left with the recorder.
pub(super) struct BatchRecords {
    /// What its calls build on.
    foundation: Foundation,
    /// The ends of calls that ended where nothing could wait.
    ends: Mutex<Vec<(u32, Pending)>>,
    /// The calls that were suspended while they were asked about (SM-10).
    asked_later: Mutex<Vec<u32>>,
    /// How many answers were given to the recorder whose givers are still to be told what became of them.
    answers: AtomicU32,
    /// Whether its caller can resume it in another life of the engine (SM-10).
    pub(super) may_be_resumed: bool,
    /// Whether its calls have the arguments that were sent: no layer has changed those of any.
    pub(super) are_as_sent: bool,
}

impl BatchRecords {
    /// Nothing yet but what its calls build on.
    pub(super) fn on(foundation: Foundation, may_be_resumed: bool, are_as_sent: bool) -> Self {
        let (ends, asked_later, answers) = (Mutex::default(), Mutex::default(), AtomicU32::new(0));
        Self { foundation, ends, asked_later, answers, may_be_resumed, are_as_sent }
    }

    pub(super) fn foundation(&self) -> &Foundation {
        &self.foundation
    }

    /// Adds the end of a call, for which the reply of the batch waits.
    pub(super) fn add_end(&self, index: u32, pending: Pending) {
        self.ends.lock().push((index, pending));
    }

    /// Takes the ends that are to be waited for.
    pub(super) fn take_ends(&self) -> Vec<(u32, Pending)> {
        std::mem::take(&mut *self.ends.lock())
    }

    /// Notes that a call is suspended while it is asked about: an answer that is durable holds when it is taken up.
    pub(super) fn ask_later(&self, index: u32) {
        self.asked_later.lock().push(index);
    }

    pub(super) fn is_asked_later(&self, index: u32) -> bool {
        self.asked_later.lock().contains(&index)
    }

    /// Counts an answer that is being recorded.
    pub(super) fn records_answer(&self) {
        self.answers.fetch_add(1, Ordering::SeqCst);
    }

    /// Its giver has been told.
    pub(super) fn answer_told(&self) {
        self.answers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether the giver of an answer is still to be told what became of it.
    pub(super) fn has_answers(&self) -> bool {
        self.answers.load(Ordering::SeqCst) > 0
    }
}

/// What a session has left with the recorder.
pub(super) struct SessionRecords {
    pub(super) terms: SessionTerms,
    /// Whether somebody has named it (SM-8).
    pub(super) is_named: bool,
    /// Whether its callers can resume turns in another life of the engine (SM-10).
    pub(super) is_resumed: bool,
    /// What its batches build on: its own record, and those of the agents above it.
    pub(super) foundation: OnceLock<Foundation>,
    /// The cancels that are not known to be durable.
    cancels: Mutex<Foundation>,
    /// The turns of earlier lives of the engine that were taken up.
    taken_up: Mutex<BTreeSet<u64>>,
    /// How many calls those have left interrupted, and how many turns open; if there were any lives.
    recovered: OnceLock<(u64, u64)>,
}

impl SessionRecords {
    pub(super) fn new(terms: SessionTerms, is_named: bool, is_resumed: bool) -> Box<Self> {
        let (foundation, cancels) = (OnceLock::new(), Mutex::default());
        let (taken_up, recovered) = (Mutex::default(), OnceLock::new());
        Box::new(Self { terms, is_named, is_resumed, foundation, cancels, taken_up, recovered })
    }

    /// Notes that its name was used in earlier lives of the engine.
    pub(super) fn recovers(&self, past: &Past) {
        let _ = self.recovered.set((past.interrupted, past.open_turns)); // only once
    }

    pub(super) fn recovered(&self) -> Option<(u64, u64)> {
        self.recovered.get().copied()
    }

    /// Notes that a turn of an earlier life of the engine is taken up. `false` if it was already.
    pub(super) fn takes_up(&self, turn: u64) -> bool {
        self.taken_up.lock().insert(turn)
    }

    /// The turn may be taken up after all.
    pub(super) fn gives_up(&self, turn: u64) {
        self.taken_up.lock().remove(&turn);
    }

    /// Adds a cancel.
    pub(super) fn add_cancel(&self, pending: Pending) {
        let before = {
            let mut cancels = self.cancels.lock();
            let now = cancels.and(Some(pending));
            std::mem::replace(&mut *cancels, now)
        };
        drop(before); // outside of the lock, because it is the embedder's
    }

    /// The cancels that are not known to be durable.
    pub(super) fn cancels(&self) -> Foundation {
        self.cancels.lock().clone()
    }

    /// Forgets those that are known to have failed: that has been reported.
    pub(super) fn forget_failed_cancels(&self) {
        let before = {
            let mut cancels = self.cancels.lock();
            let open = cancels.open();
            std::mem::replace(&mut *cancels, open)
        };
        drop(before); // outside of the lock
    }
}
