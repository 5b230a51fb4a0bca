//! The state that all agents of a session share: the serial lease, the tree cap, and the counters of its name.

use super::{
    approvals::Approvals, result_capacity::ResultCapacity, shared_questions::SharedQuestions,
    spending::Spending, units::ToolUnits,
};
use crate::{
    config::Budgets,
    record::{Past, Sequence},
};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use toolyard_admission::{Admission, LeaseId, Reach, Scope, UnitId, UnitKind};
use toolyard_redact::GivenMarks;

/// The counters that belong to a session's name. A session opened while another of its name closes continues them, so
/// that the numbers in its events never repeat.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(super) sequence: Sequence,
    turns: AtomicU64,
    batches: AtomicU64,
    forks: AtomicU64,
}

impl Numbers {
    /// Goes on from the numbers of earlier lives of the engine (JR-10).
    pub(crate) fn go_on_from(&self, past: &Past) {
        self.turns.fetch_max(past.turns, Ordering::Relaxed);
        self.batches.fetch_max(past.batches, Ordering::Relaxed);
        self.forks.fetch_max(past.forks, Ordering::Relaxed);
    }

    pub(super) fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn next_batch(&self) -> u64 {
        self.batches.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn next_fork(&self) -> u64 {
        self.forks.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A session and all its forks.
pub(super) struct Tree {
    /// The number of the root session in the engine. Fairness is among trees (CC-3).
    pub(super) root: u64,
    /// The lease for the serial calls of the whole tree; it has width 1 (CL-6).
    pub(super) serial: LeaseId,
    /// Bounds the running calls of the whole tree.
    pub(super) cap: Option<UnitId>,
    /// Tool limits that count over the whole tree.
    pub(super) tools: ToolUnits,
    pub(super) numbers: Arc<Numbers>,
    /// What the whole tree may spend.
    pub(super) spending: Spending,
    /// Answers that hold for more than one call.
    pub(super) approvals: Arc<Approvals>,
    /// The marks that its results have in place of secrets.
    pub(super) given_marks: GivenMarks,
    /// How many handlers of its calls are parked, including those that wait to resume.
    parked: AtomicUsize,
    /// Open questions that several calls wait for.
    pub(super) questions: Arc<SharedQuestions>,
    /// The memory of its results.
    pub(super) results: ResultCapacity,
    admission: Arc<Admission>,
}

impl Tree {
    pub(super) fn new(
        root: u64,
        cap: Option<NonZeroUsize>,
        priority: u8,
        budgets: Budgets,
        numbers: Arc<Numbers>,
        results_bytes_max: usize,
        admission: &Arc<Admission>,
    ) -> Arc<Self> {
        admission.set_weight(root, priority);
        Arc::new(Self {
            root,
            serial: admission.open_lease(Scope::Tree),
            cap: cap.map(|max| admission.open(UnitKind::Tree, max.get())),
            tools: ToolUnits::new(admission.clone(), Reach::Tree),
            numbers,
            spending: Spending::new(budgets),
            approvals: Arc::default(),
            parked: AtomicUsize::new(0),
            given_marks: GivenMarks::default(),
            questions: Arc::default(),
            results: ResultCapacity::new(results_bytes_max),
            admission: admission.clone(),
        })
    }

    /// Counts one parked handler more; `false` if there are `max` already.
    pub(super) fn park(&self, max: usize) -> bool {
        let more = |parked| (parked < max).then_some(parked + 1);
        self.parked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts one less.
    pub(super) fn unpark(&self) {
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.admission.close_lease(self.serial);
        self.admission.close_units(self.cap);
        self.admission.set_weight(self.root, 1);
    }
}
