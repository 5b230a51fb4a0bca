//! Starts granted calls outside the table's lock, one after the other per thread.
//!
//! ```text
//!   a release ──► grants ──► start, start, start ...
//!                              └ drops its permit: a release ──► its grants queue behind those above
//! ```
//!
//! A call that cannot start releases its permit at once, which starts the next one. If each start ran inside the one
//! before it, a long queue of such calls would overflow the stack.

use super::{Admission, GrantedWaiter, Held, Permit, Place};
use crate::tasks::{Panic, caught};
use smallvec::SmallVec;
use std::{cell::RefCell, collections::VecDeque, mem::ManuallyDrop, sync::Arc};
use tokio::time::Instant;

/// A granted waiter that is about to start. A call gets its permit when it is started, so that the permit is released
/// whatever happens to the call. A handler that resumes keeps track of its units itself.
struct Ready {
    granted: GrantedWaiter<Place>,
    at: Instant,
}

/// A start that is still to come. It names its own table because that may differ from the one being served.
type PendingStart = (Arc<Admission>, Ready);

thread_local! {
    /// The starts still to come while this thread is starting something. It has no destructor, so that it stays
    /// accessible to the end of the thread: permits may be among the last values that a thread drops.
    static STARTING: RefCell<Option<ManuallyDrop<VecDeque<PendingStart>>>> = const { RefCell::new(None) };
}

/// The grants and refusals caused by one change of the table.
#[must_use = "granted calls must be started"]
pub(crate) struct Granted<'a> {
    pub(super) admission: &'a Arc<Admission>,
    pub(super) calls: SmallVec<[GrantedWaiter<Place>; 1]>,
    /// Waiters that may not wait any more (CC-8).
    pub(super) refused: Vec<Place>,
    /// Whether the change unblocks more calls than are granted at once (CC-3).
    pub(super) owes: bool,
    /// When they were granted, if the caller knows.
    pub(super) at: Option<Instant>,
}

impl Granted<'_> {
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
    pub(crate) fn start(self) {
        if self.is_nothing() {
            return;
        }
        let mut panic = None;
        for place in self.refused {
            panic = panic.or(caught(|| place.waiter.refuse(place.index)).err());
        }
        panic = panic.or(caught(|| start_in_turn(self.admission, self.calls, self.at)).err());
        let mut has_more = self.owes;
        while has_more {
            has_more = match caught(|| self.admission.settle_slice()) {
                Ok((granted, more)) => {
                    panic = panic.or(caught(|| granted.start()).err());
                    more
                }
                Err(raised) => {
                    panic = panic.or(Some(raised));
                    false
                }
            };
        }
        if let Some(panic) = panic {
            panic.resume();
        }
    }
}

/// Starts the calls, or leaves them to the start already under way on this thread.
fn start_in_turn(
    admission: &Arc<Admission>,
    calls: SmallVec<[GrantedWaiter<Place>; 1]>,
    at: Option<Instant>,
) {
    let at = at.unwrap_or_else(Instant::now);
    let mut ready = calls.into_iter().map(|granted| Ready { granted, at });
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

/// Starts `first` and everything queued behind it, including what is added meanwhile.
fn start_all(admission: &Arc<Admission>, first: Ready) {
    let mut panic = start(admission, first);
    while let Some((admission, ready)) = next_ready() {
        panic = panic.or(start(&admission, ready));
    }
    if let Some(panic) = panic {
        panic.resume();
    }
}

/// Starts one call and returns its panic: the calls behind it hold their units already and must still be started.
fn start(admission: &Arc<Admission>, Ready { granted, at }: Ready) -> Option<Panic> {
    let GrantedWaiter { waiter: Place { waiter, index, resumes }, need, entry } = granted;
    let start = || match resumes {
        true => {
            admission.unparked(Held { need, entry });
            waiter.resume(index);
        }
        false => waiter.start(index, Permit::new(admission, need, entry, at)),
    };
    caught(start).err()
}

/// The next call to start. `None` ends this thread's round of starts.
fn next_ready() -> Option<PendingStart> {
    STARTING.with_borrow_mut(|starting| {
        let next = starting.as_mut().and_then(|ready| ready.pop_front());
        if next.is_none() {
            // The queue is empty, so only its memory is freed.
            drop(starting.take().map(ManuallyDrop::into_inner));
        }
        next
    })
}
