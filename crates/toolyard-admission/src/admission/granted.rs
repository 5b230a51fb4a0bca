//! What one change of the table has led to, to be started outside its lock.

use super::{
    Admission,
    start::{Grants, start_in_turn},
    waiter::Place,
};
use crate::panics::FirstPanic;
use std::sync::Arc;
use tokio::time::Instant;

/// The grants and refusals caused by one change of the table.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need, UnitKind};
/// let admission = Admission::new([1, 1, 1], 1_000, 100);
/// let session = admission.open(UnitKind::Session, 1);
/// let granted = admission.resize_unit(session, 2);
/// // Whatever locks the caller holds are released here.
/// granted.start();
/// ```
#[must_use = "granted calls must be started"]
pub struct Granted<'a> {
    admission: &'a Arc<Admission>,
    calls: Grants,
    /// Waiters that may not wait any more (CC-8).
    refused: Vec<Place>,
    /// Whether the change unblocks more calls than are granted at once (CC-3).
    owes: bool,
    /// When they were granted, if the caller knows.
    at: Option<Instant>,
}

impl<'a> Granted<'a> {
    pub(super) fn new(admission: &'a Arc<Admission>, calls: Grants, refused: Vec<Place>, owes: bool) -> Self {
        Self { admission, calls, refused, owes, at: None }
    }

    /// The same, granted at that instant.
    pub(super) fn granted_at(self, at: Instant) -> Self {
        Self { at: Some(at), ..self }
    }

    /// Whether nobody was waiting, as is almost always so.
    pub(super) fn is_nothing(&self) -> bool {
        self.refused.is_empty() && self.calls.is_empty() && !self.owes
    }

    /// Ends the refused calls and starts the granted ones; then grants and starts the rest in slices. When called from
    /// within a start, the calls are started after those already pending on this thread.
    ///
    /// # Panics
    /// When starting or ending a call panics; the panic is raised after all of them have been started. A panic of the
    /// table itself ends the slices: it would come again with each.
    ///
    /// # Examples
    /// See [`Granted`].
    pub fn start(self) {
        if self.is_nothing() {
            return;
        }
        let mut panic = FirstPanic::default();
        for place in self.refused {
            panic.catch(|| place.waiter.refuse(place.index));
        }
        panic.catch(|| start_in_turn(self.admission, self.calls, self.at));
        let mut has_more = self.owes;
        while has_more {
            let slice = panic.catch(|| self.admission.settle_slice());
            has_more = slice.is_some_and(|(granted, more)| {
                panic.catch(|| granted.start());
                more
            });
        }
        panic.raise();
    }
}
