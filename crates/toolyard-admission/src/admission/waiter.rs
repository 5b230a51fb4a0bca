//! Who waits, and how a waiter learns of its turn.

use super::permit::Permit;
use crate::store::party::{self, PlaceInLine};
use std::{ptr, sync::Arc};

/// A batch with waiting calls, and how to start them. All of it is called outside the table's lock.
///
/// # Examples
/// ```
/// use std::sync::{Arc, Mutex};
/// use tokio::time::Instant;
/// use toolyard_admission::{Admission, Ask, Need, Permit, Waiter};
/// use toolyard_core::ToolClass;
///
/// /// Calls that run as soon as they may, and take no time.
/// #[derive(Default)]
/// struct Batch(Mutex<Vec<u32>>);
///
/// impl Waiter for Batch {
///     fn start(self: Arc<Self>, index: u32, permit: Permit<'_>) {
///         self.0.lock().unwrap().push(index);
///         drop(permit); // starts the next one
///     }
///     fn resume(self: Arc<Self>, _: u32) {}
///     fn expire(self: Arc<Self>, _: u32) {}
///     fn refuse(&self, _: u32) {}
/// }
///
/// let admission = Admission::new([1, 1, 1], 1_000, 100);
/// let read = Need::of(admission.open_class(ToolClass::Read), None, None);
/// let running = admission.try_admit(1, read);
/// let batch = Arc::new(Batch::default());
/// for index in 0..3 {
///     assert!(admission.admit(&Ask::of_root(1, read), Instant::now(), (&batch, index)).is_ok());
/// }
/// drop(running);
/// assert_eq!(*batch.0.lock().unwrap(), [0, 1, 2]);
/// ```
pub trait Waiter: Send + Sync {
    /// Starts call `index` with the permit it waited for.
    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>);

    /// Lets the parked handler of call `index` continue: it holds what it needs again (CC-6).
    fn resume(self: Arc<Self>, index: u32);

    /// Ends call `index`, which has waited for zombies long enough.
    fn expire(self: Arc<Self>, index: u32);

    /// Ends call `index`: another call took its lease, and it may not wait for that lease (CC-8).
    fn refuse(&self, index: u32);
}

/// A place in line: the batch, and the call's index in it. A waiting call has no task. It does not even have a
/// `Place` of its own when it queued right behind its neighbour in the batch.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) waiter: Arc<dyn Waiter>,
    pub(super) index: u32,
    /// Whether this is a parked handler waiting to resume.
    pub(super) resumes: bool,
}

impl PlaceInLine for Place {
    fn behind(self, places: u32) -> Self {
        Self { index: self.index + places, ..self }
    }
}

/// A call that asks for permits: one of the calls of a [`Waiter`]. `(&Arc<waiter>, index)` is one.
///
/// # Examples
/// A call that is known by something else than its batch:
/// ```
/// # use toolyard_admission::{Permit, Waiter};
/// # struct Batch;
/// # impl Waiter for Batch {
/// #     fn start(self: Arc<Self>, _: u32, _: Permit<'_>) {}
/// #     fn resume(self: Arc<Self>, _: u32) {}
/// #     fn expire(self: Arc<Self>, _: u32) {}
/// #     fn refuse(&self, _: u32) {}
/// # }
/// use std::sync::Arc;
/// use toolyard_admission::Asker;
///
/// struct Call {
///     batch: Arc<Batch>,
///     index: u32,
/// }
///
/// impl Asker for &Call {
///     type Waiter = Batch;
///     fn address(&self) -> *const Batch {
///         Arc::as_ptr(&self.batch)
///     }
///     fn index(&self) -> u32 {
///         self.index
///     }
///     fn waiter(&self) -> Arc<Batch> {
///         self.batch.clone()
///     }
/// }
/// ```
pub trait Asker {
    /// The batch.
    type Waiter: Waiter + 'static;

    /// The batch, only to be compared.
    fn address(&self) -> *const Self::Waiter;

    /// Its place in the batch.
    fn index(&self) -> u32;

    /// The batch, to be kept: used only if the call has to wait, and no neighbour of it waits before it.
    fn waiter(&self) -> Arc<Self::Waiter>;
}

impl<T: Waiter + 'static> Asker for (&Arc<T>, u32) {
    type Waiter = T;

    fn address(&self) -> *const T {
        Arc::as_ptr(self.0)
    }

    fn index(&self) -> u32 {
        self.1
    }

    fn waiter(&self) -> Arc<T> {
        self.0.clone()
    }
}

/// A call or handler about to wait.
pub(super) struct Newcomer<T> {
    pub(super) call: T,
    pub(super) resumes: bool,
}

impl<T: Asker> party::Newcomer<Place> for Newcomer<T> {
    fn is_behind(&self, first: &Place, places: u32) -> bool {
        ptr::addr_eq(self.call.address(), Arc::as_ptr(&first.waiter))
            && u64::from(first.index) + u64::from(places) == u64::from(self.call.index())
            && first.resumes == self.resumes
    }

    fn into_first(self) -> Place {
        Place { waiter: self.call.waiter(), index: self.call.index(), resumes: self.resumes }
    }
}
