//! Starts what the table has granted: outside its lock, and one after the other on a thread.
//!
//! ```text
//!   a release ──► grants ──► start, start, start ...
//!                              └ drops its permit: a release ──► its grants go behind those above
//! ```
//!
//! A call that cannot start gives its permit back at once, and that starts the next. Were each started from
//! within the one before, a long queue of such calls would use up the stack.

use super::{Admission, Going, Permit, Place};
use smallvec::SmallVec;
use std::{
    any::Any,
    cell::RefCell,
    collections::VecDeque,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};
use tokio::time::Instant;

/// One who goes: a call gets a permit when it is started, and whatever becomes of it, that is given back. A handler that
/// resumes has its units by itself.
struct Ready {
    going: Going<Place>,
    at: Instant,
}

/// What is to be started later: the table it was granted by may be another one then.
type Later = (Arc<Admission>, Ready);

thread_local! {
    /// What is still to be started while this thread starts something. It has no destructor, so that it is
    /// there to the end of the thread: permits may be among the last values that a thread drops.
    static STARTING: RefCell<Option<ManuallyDrop<VecDeque<Later>>>> = const { RefCell::new(None) };
}

/// What one change of the table has granted.
#[must_use = "calls that are granted are to be started"]
pub(crate) struct Granted<'a> {
    pub(super) admission: &'a Arc<Admission>,
    pub(super) calls: SmallVec<[Going<Place>; 1]>,
    /// Those who waited and may not wait any more (CC-8).
    pub(super) refused: Vec<Place>,
    /// When, where whoever changed it knows.
    pub(super) at: Option<Instant>,
}

impl Granted<'_> {
    /// Ends those who were refused and starts the calls; from within a start, when those before them have been
    /// started.
    ///
    /// # Panics
    /// When the start or the end of a call panics, after all of them have been started.
    pub(crate) fn start(self) {
        if self.refused.is_empty() && self.calls.is_empty() {
            return; // nearly always: a release that nobody waited for
        }
        let mut panic = None;
        for place in self.refused {
            let refuse = AssertUnwindSafe(|| place.waiter.refuse(place.index));
            panic = panic.or(catch_unwind(refuse).err());
        }
        start_in_turn(self.admission, self.calls, self.at);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Starts the calls, or has the start do it that this thread is in.
fn start_in_turn(admission: &Arc<Admission>, calls: SmallVec<[Going<Place>; 1]>, at: Option<Instant>) {
    let at = at.unwrap_or_else(Instant::now);
    let mut ready = calls.into_iter().map(|going| Ready { going, at });
    let first = STARTING.with_borrow_mut(|starting| {
        let later = |ready| (admission.clone(), ready);
        let Some(starting) = starting else {
            let first = ready.next()?;
            *starting = Some(ManuallyDrop::new(ready.map(later).collect()));
            return Some(first);
        };
        starting.extend(ready.map(later));
        None
    });
    if let Some(first) = first {
        start_all(admission, first);
    }
}

/// Starts `first` and everything that is or comes behind it.
fn start_all(admission: &Arc<Admission>, first: Ready) {
    let mut panic = start(admission, first);
    while let Some((admission, ready)) = next_ready() {
        panic = panic.or(start(&admission, ready));
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// Starts one; its panic, for those behind it have their units and nobody else would start them.
fn start(admission: &Arc<Admission>, Ready { going, at }: Ready) -> Option<Box<dyn Any + Send>> {
    let Going { waiter: Place { waiter, index, resumes }, need, entry } = going;
    let start = AssertUnwindSafe(|| match resumes {
        true => {
            admission.unparked();
            waiter.resume(index);
        }
        false => waiter.start(index, Permit::new(admission, need, entry, at)),
    });
    catch_unwind(start).err()
}

/// The next to start; without one this thread has done.
fn next_ready() -> Option<Later> {
    STARTING.with_borrow_mut(|starting| {
        let next = starting.as_mut().and_then(|ready| ready.pop_front());
        if next.is_none() {
            // Empty, so all there is to drop is its memory.
            drop(starting.take().map(ManuallyDrop::into_inner));
        }
        next
    })
}
