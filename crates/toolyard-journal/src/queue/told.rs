//! How those who wait for the records of a group are told.
//!
//! ```text
//!   writer ─ what became of its record is left with each ─► one task is woken ─► which wakes the others
//!      └─ if that takes a millisecond, or the next group is to be committed ─► wakes them itself
//! ```
//!
//! To wake a task from another thread takes a call of the system, and may wake a processor. Who waits for the same group is
//! mostly on the same runtime, where one task wakes another by a push into its queue. Whom it wakes last may run after it on
//! its own thread; so a few are woken by the writer alone.

use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    mem::replace,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use toolyard::RecordError;

type Result = std::result::Result<(), RecordError>;

/// As few as these are woken by the writer.
const FEW: usize = 3;

/// What becomes of a record, and who waits for it.
struct Slot(Mutex<State>);

enum State {
    /// Nobody knows yet; the task that has asked last.
    Open(Option<Waker>),
    Told {
        result: Result,
        /// The others, if this is the first of its group: woken when it asks, or goes.
        _others: Option<WakesOthers>,
    },
    Read,
}

/// The place where whoever waits for a record is told of it, and who reads it there.
pub(crate) fn waiter() -> (Waiter, Waits) {
    let slot = Arc::new(Slot(Mutex::new(State::Open(None))));
    (Waiter(Arc::clone(&slot)), Waits(slot))
}

/// Whoever waits for a record. If it is dropped, the record has failed.
pub(crate) struct Waiter(Arc<Slot>);

impl Waiter {
    /// Leaves what became of the record. Returns whom to wake for it.
    fn leave(&self, result: Result, others: impl FnOnce() -> Option<WakesOthers>) -> Option<Waker> {
        let mut state = self.0.0.lock();
        match &mut *state {
            State::Open(waker) => {
                let waker = waker.take();
                let _others = waker.as_ref().and_then(|_| others());
                *state = State::Told { result, _others };
                waker
            }
            State::Told { .. } | State::Read => None,
        }
    }

    fn tell(&self, result: Result) {
        if let Some(waker) = self.leave(result, || None) {
            waker.wake();
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let is_open = matches!(*self.0.0.lock(), State::Open(_));
        if is_open {
            self.tell(Err(RecordError::new("the journal's writer has ended")));
        }
    }
}

/// The other side of a [`Waiter`].
pub(super) struct Waits(Arc<Slot>);

impl Waits {
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Result> {
        let mut state = self.0.0.lock();
        match &mut *state {
            State::Open(waker) if waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) => {
                return Poll::Pending;
            }
            State::Open(waker) => {
                let last = waker.replace(cx.waker().clone());
                drop(state);
                // Outside of the lock: it may end a task.
                drop(last);
                return Poll::Pending;
            }
            State::Told { .. } | State::Read => {}
        }
        let told = replace(&mut *state, State::Read);
        // The others are woken outside of it too, before this one goes on.
        drop(state);
        match told {
            State::Told { result, .. } => Poll::Ready(result),
            State::Open(_) | State::Read => Poll::Ready(Err(RecordError::new("it was told before"))),
        }
    }
}

/// Whoever goes is not woken any more; if it was to wake others, it does so now.
impl Drop for Waits {
    fn drop(&mut self) {
        let last = replace(&mut *self.0.0.lock(), State::Read);
        // Outside of the lock: it may wake others, and end a task.
        drop(last);
    }
}

/// Tells these that what they wait for has failed.
pub(crate) fn tell(waiters: impl IntoIterator<Item = Waiter>, error: &RecordError) {
    for waiter in waiters {
        waiter.tell(Err(error.clone()));
    }
}

/// Those of the groups that were told who are still to be woken.
#[derive(Clone, Default)]
pub(crate) struct Others(Arc<Mutex<VecDeque<Waker>>>);

impl Others {
    /// Tells each of a group what became of its record: wakes one of them, which wakes the others.
    pub(crate) fn tell(&self, group: impl IntoIterator<Item = (Waiter, Result)>) {
        let (mut first, mut wakers) = (None, VecDeque::new());
        for (waiter, result) in group {
            let wakes = || first.is_none().then(|| WakesOthers(self.clone()));
            match waiter.leave(result, wakes) {
                Some(waker) if first.is_none() => first = Some(waker),
                Some(waker) => wakers.push_back(waker),
                None => {}
            }
        }
        let are_few = wakers.len() < FEW;
        // If the first has asked before this, unwoken, the writer wakes them.
        self.0.lock().append(&mut wakers);
        if let Some(first) = first {
            first.wake();
        }
        if are_few {
            self.wake();
        }
    }

    /// Wakes all who are not woken yet.
    pub(crate) fn wake(&self) {
        loop {
            let next = self.0.lock().pop_front();
            match next {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }

    /// Whether nobody is left to be woken.
    pub(crate) fn are_woken(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// Wakes the others once the first has read what it is told, or goes without.
struct WakesOthers(Others);

impl Drop for WakesOthers {
    fn drop(&mut self) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many who wait, of whom all but the first have asked, and how often any was woken.
    fn waiting(count: usize) -> (Vec<Waiter>, Vec<Waits>, Arc<Woken>) {
        let woken = Arc::new(Woken::default());
        let (waiters, waits): (Vec<_>, Vec<_>) = (0..count).map(|_| waiter()).unzip();
        waits.iter().skip(1).for_each(|waits| assert!(asked(waits, &woken).is_pending()));
        (waiters, waits, woken)
    }

    fn asked(waits: &Waits, woken: &Arc<Woken>) -> Poll<Result> {
        waits.poll(&Context::from_waker(&Waker::from(Arc::clone(woken))))
    }

    fn told(waiters: Vec<Waiter>) -> Others {
        let others = Others::default();
        others.tell(waiters.into_iter().map(|waiter| (waiter, Ok(()))));
        others
    }

    fn times(woken: &Woken) -> usize {
        woken.0.load(Ordering::Relaxed)
    }

    /// JR-2: one of those who have asked is woken, and wakes the others when it asks again; who has not asked yet finds
    /// what it is told.
    #[test]
    fn the_first_wakes_the_others() {
        let (waiters, waits, woken) = waiting(5);
        let others = told(waiters);
        assert_eq!((times(&woken), others.are_woken()), (1, false));
        assert!(matches!(asked(&waits[0], &woken), Poll::Ready(Ok(()))));
        assert!(matches!(asked(&waits[3], &woken), Poll::Ready(Ok(()))));
        assert_eq!(times(&woken), 1);
        assert!(matches!(asked(&waits[1], &woken), Poll::Ready(Ok(()))));
        assert_eq!((times(&woken), others.are_woken()), (4, true));
        others.wake();
        assert_eq!(times(&woken), 4);
    }

    /// JR-2: if the first goes without asking, the others are woken with that; and if it does neither, by the writer.
    #[test]
    fn nobody_depends_on_the_first() {
        let (waiters, waits, woken) = waiting(6);
        let _others = told(waiters);
        drop(waits);
        assert_eq!(times(&woken), 5);
        let (waiters, _waits, woken) = waiting(6);
        told(waiters).wake();
        assert_eq!(times(&woken), 5);
        let (waiters, mut waits, woken) = waiting(6);
        waits.remove(1);
        let others = told(waiters);
        assert_eq!((times(&woken), others.are_woken()), (1, false), "who has gone before is not the first");
        waits.remove(1);
        assert_eq!((times(&woken), others.are_woken()), (4, true));
    }

    /// JR-2: a few are woken by the writer alone.
    #[test]
    fn a_few_are_woken_at_once() {
        let (waiters, _waits, woken) = waiting(4);
        assert!(told(waiters).are_woken());
        assert_eq!(times(&woken), 3);
    }

    /// JR-12: whoever waits for a writer that has gone is told so.
    #[test]
    fn a_waiter_that_is_dropped_has_failed() {
        let (waiters, waits, woken) = waiting(2);
        drop(waiters);
        assert_eq!(times(&woken), 1);
        assert!(waits.iter().all(|waits| matches!(asked(waits, &woken), Poll::Ready(Err(_)))));
    }
}
