//! Starts granted calls outside the table's lock, one after the other per thread.
//!
//! ```text
//!   a release ──► grants ──► start, start, start ...
//!                              └ drops its permit: a release ──► its grants queue behind those above
//! ```
//!
//! A call that cannot start releases its permit at once, which starts the next one. If each start ran inside the one
//! before it, a long queue of such calls would overflow the stack.

use super::{Admission, held::Held, permit::Permit, waiter::Place};
use crate::{panics::FirstPanic, table::GrantedWaiter};
use smallvec::SmallVec;
use std::{cell::RefCell, collections::VecDeque, mem::ManuallyDrop, sync::Arc};
use tokio::time::Instant;

/// The waiters granted by one change. Almost always one or none, which needs no allocation.
pub(super) type Grants = SmallVec<[GrantedWaiter<Place>; 1]>;

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

/// Starts the calls, or leaves them to the start already under way on this thread.
pub(super) fn start_in_turn(admission: &Arc<Admission>, calls: Grants, at: Option<Instant>) {
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

/// Starts `first` and everything queued behind it, including what is added meanwhile. A start that panics keeps none of
/// the others from starting: they hold their units already.
fn start_all(admission: &Arc<Admission>, first: Ready) {
    let mut panic = FirstPanic::default();
    panic.catch(|| start(admission, first));
    while let Some((admission, ready)) = next_ready() {
        panic.catch(|| start(&admission, ready));
    }
    panic.raise();
}

fn start(admission: &Arc<Admission>, Ready { granted, at }: Ready) {
    let GrantedWaiter { waiter: Place { waiter, index, resumes }, need, entry } = granted;
    let held = Held { need, entry };
    if resumes {
        admission.unparked(held);
        waiter.resume(index);
    } else {
        waiter.start(index, Permit::new(admission, held, at));
    }
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
