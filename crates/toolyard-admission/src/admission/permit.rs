//! The right to run one call that had to wait, held until the call is started and released on drop.

use super::{Admission, held::Held};
use std::sync::Arc;
use tokio::time::Instant;

/// Everything one call was granted. Dropping it releases all of it and starts the calls that this unblocks. An
/// attempt that takes it over does the same with what it holds.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need, UnitKind};
/// let admission = Admission::new([1, 1, 1], 1_000, 100);
/// let one = Need::of(admission.open(UnitKind::Session, 1), None, None);
/// drop(admission.try_admit(1, one));
/// assert!(admission.try_admit(1, one).is_some(), "it was released");
/// ```
#[must_use = "dropping a permit releases it"]
pub struct Permit<'a> {
    /// `None` once an attempt has taken over what it holds.
    admission: Option<&'a Arc<Admission>>,
    held: Held,
    granted_at: Instant,
}

impl<'a> Permit<'a> {
    /// Wraps what the table granted at `granted_at`.
    pub(super) fn new(admission: &'a Arc<Admission>, held: Held, granted_at: Instant) -> Self {
        Self { admission: Some(admission), held, granted_at }
    }

    /// When it was granted.
    ///
    /// # Examples
    /// ```
    /// use tokio::time::Instant;
    /// use toolyard_admission::{Admission, Need};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let permit = admission.try_admit(1, Need::default()).expect("it needs nothing");
    /// assert!(permit.granted_at() <= Instant::now());
    /// ```
    #[inline]
    pub fn granted_at(&self) -> Instant {
        self.granted_at
    }

    /// What it holds.
    ///
    /// # Examples
    /// See [`EntryId`](crate::EntryId).
    #[inline]
    pub fn held(&self) -> Held {
        self.held
    }

    /// Passes what it holds to the attempt, which has to give it back.
    ///
    /// # Examples
    /// See [`Held`].
    #[inline]
    pub fn hand_over(mut self) -> Held {
        self.admission = None;
        self.held
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.finish(self.held, Instant::now());
        }
    }
}
