//! The memory that results take until their caller has them.
//!
//! ```text
//!   result ─► its batch ─► in steps ─► its session, forks included ─► the engine
//!               │ full      │ full        │ full
//!               └───────────┴─────────────┴─► `output_too_large`, and what has not started ends `overloaded`
//! ```
//!
//! A result counts from its call's end until the batch lets go of it: when the caller has taken the results, or, for a
//! batch that a turn keeps to be resent, when the turn is dropped. What a batch has taken is given back as a whole, once,
//! whatever became of its calls. Copies count too: a call that shares another's result has one of its own.
//!
//! A call pays one addition. Only a batch that has grown by a step takes from the counts it shares with others.

use crate::agent::ResultCapacity;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What a batch may hold before it counts for its session and the engine, in bytes.
const UNCOUNTED: usize = 16 << 10;

/// How much a batch takes at a time from its session and the engine, in bytes.
const STEP: usize = 64 << 10;

/// A result of at most this size, in bytes, always fits: the error in its place would take as much.
const SMALL: usize = 1 << 10;

/// What a batch takes from.
pub(crate) struct Capacities<'a> {
    pub(crate) batch_max: usize,
    pub(crate) session: &'a ResultCapacity,
    pub(crate) engine: &'a ResultCapacity,
}

/// Where there was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Batch,
    Session,
    Engine,
}

impl Full {
    /// Whose bound it is, and the bound in bytes.
    pub(crate) fn bound(self, capacities: &Capacities<'_>) -> (&'static str, usize) {
        match self {
            Self::Batch => ("this batch", capacities.batch_max),
            Self::Session => ("this session", capacities.session.max()),
            Self::Engine => ("all sessions", capacities.engine.max()),
        }
    }
}

/// How much a whole batch holds, in one piece or several.
#[derive(Debug, Default)]
pub(crate) struct BatchHolds {
    bytes: AtomicUsize,
    /// A result of it did not fit.
    is_spent: AtomicBool,
}

/// What one piece of a batch holds.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    own: BatchHolds,
    /// What all pieces of its batch hold, if it is one of several.
    whole: Option<Arc<BatchHolds>>,
    /// What it has taken from its session and the engine.
    taken: AtomicUsize,
    /// Held while it takes more.
    taking: Mutex<()>,
}

impl Holding {
    pub(crate) fn of_piece(whole: Option<Arc<BatchHolds>>) -> Self {
        Self { whole, ..Self::default() }
    }

    /// Holds a result of this size, unless there is no room for it.
    #[inline]
    pub(crate) fn hold(&self, bytes: usize, capacities: &Capacities<'_>) -> Result<(), Full> {
        let own = self.own.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if own <= UNCOUNTED && self.whole.is_none() && own <= capacities.batch_max {
            return Ok(()); // the usual case
        }
        self.hold_more(bytes, own, capacities)
    }

    #[cold]
    fn hold_more(&self, bytes: usize, own: usize, capacities: &Capacities<'_>) -> Result<(), Full> {
        let in_batch = match &self.whole {
            Some(whole) => whole.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes,
            None => own,
        };
        let fits =
            if in_batch > capacities.batch_max { Err(Full::Batch) } else { self.take_for(own, capacities) };
        if fits.is_ok() || bytes <= SMALL {
            return Ok(());
        }
        self.own.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.own.is_spent.store(true, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.bytes.fetch_sub(bytes, Ordering::Relaxed);
            whole.is_spent.store(true, Ordering::Relaxed);
        }
        fits
    }

    /// Takes enough from session and engine for this many bytes.
    fn take_for(&self, bytes: usize, capacities: &Capacities<'_>) -> Result<(), Full> {
        let is_enough = || bytes <= UNCOUNTED.max(self.taken.load(Ordering::Relaxed));
        if is_enough() {
            return Ok(());
        }
        let _one_at_a_time = self.taking.lock();
        if is_enough() {
            return Ok(());
        }
        let more = bytes.next_multiple_of(STEP) - self.taken.load(Ordering::Relaxed);
        if !capacities.session.take(more) {
            return Err(Full::Session);
        }
        if !capacities.engine.take(more) {
            capacities.session.give_back(more);
            return Err(Full::Engine);
        }
        self.taken.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    /// Where there is no room, if nothing more should start for that reason.
    #[inline]
    pub(crate) fn full(&self, capacities: &Capacities<'_>) -> Option<Full> {
        let is_spent = |it: &BatchHolds| it.is_spent.load(Ordering::Relaxed);
        if is_spent(&self.own) || self.whole.as_deref().is_some_and(is_spent) {
            Some(Full::Batch)
        } else if capacities.session.is_spent(STEP) {
            Some(Full::Session)
        } else if capacities.engine.is_spent(STEP) {
            Some(Full::Engine)
        } else {
            None
        }
    }

    /// Lets go of a result of this size, which its caller has taken before the others. Then there may be room again.
    pub(crate) fn let_go(&self, bytes: usize, session: &ResultCapacity, engine: &ResultCapacity) {
        let less = |it: &BatchHolds| {
            it.is_spent.store(false, Ordering::Relaxed);
            let by = |held: usize| Some(held.saturating_sub(bytes));
            let _ = it.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, by); // it never fails
        };
        less(&self.own);
        self.whole.as_deref().into_iter().for_each(less);
        if self.taken.load(Ordering::Relaxed) == 0 {
            return; // the usual case
        }
        let _one_at_a_time = self.taking.lock();
        let held = self.own.bytes.load(Ordering::Relaxed);
        let needed = if held <= UNCOUNTED { 0 } else { held.next_multiple_of(STEP) };
        let surplus = self.taken.load(Ordering::Relaxed).saturating_sub(needed);
        self.taken.fetch_sub(surplus, Ordering::Relaxed);
        session.give_back(surplus);
        engine.give_back(surplus);
    }

    /// Lets go of everything: the results have been taken, or are dropped now.
    pub(crate) fn release(&self, session: &ResultCapacity, engine: &ResultCapacity) {
        if let Some(whole) = &self.whole {
            whole.bytes.fetch_sub(self.own.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        if self.taken.load(Ordering::Relaxed) == 0 {
            return; // the usual case
        }
        let taken = self.taken.swap(0, Ordering::Relaxed);
        session.give_back(taken);
        engine.give_back(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread;

    const MIB: usize = 1 << 20;

    fn capacities<'a>(
        batch_max: usize,
        session: &'a ResultCapacity,
        engine: &'a ResultCapacity,
    ) -> Capacities<'a> {
        Capacities { batch_max, session, engine }
    }

    /// CC-4: what does not fit in the batch, the session or the engine is refused there, and what is small always fits.
    #[test]
    fn each_bound_is_its_own() {
        for (batch, session, engine, full) in [
            (MIB, 8 * MIB, 8 * MIB, Full::Batch),
            (8 * MIB, MIB, 8 * MIB, Full::Session),
            (8 * MIB, 8 * MIB, MIB, Full::Engine),
        ] {
            let (session, engine) = (ResultCapacity::new(session), ResultCapacity::new(engine));
            let (holding, capacities) = (Holding::default(), capacities(batch, &session, &engine));
            assert_eq!(holding.hold(MIB / 2, &capacities), Ok(()));
            assert_eq!(holding.full(&capacities), None);
            assert_eq!(holding.hold(MIB, &capacities), Err(full));
            assert_eq!(holding.full(&capacities), Some(Full::Batch));
            assert_eq!(holding.hold(SMALL, &capacities), Ok(()));
            assert!(session.held() == engine.held() && session.held() <= MIB);
            holding.release(&session, &engine);
            holding.release(&session, &engine);
            assert_eq!((session.held(), engine.held()), (0, 0));
        }
    }

    /// A batch of small results never touches what it shares with others.
    #[test]
    fn a_small_batch_is_not_counted_further_up() {
        let (session, engine) = (ResultCapacity::new(MIB), ResultCapacity::new(MIB));
        let holding = Holding::default();
        assert!((0..16).all(|_| holding.hold(1 << 10, &capacities(MIB, &session, &engine)).is_ok()));
        assert_eq!(session.held(), 0);
        assert_eq!(holding.hold(1, &capacities(MIB, &session, &engine)), Ok(()));
        assert_eq!((session.held(), engine.held()), (STEP, STEP));
    }

    /// The pieces of a batch that is still being written share its bound.
    #[test]
    fn pieces_count_together() {
        let (session, engine) = (ResultCapacity::new(8 * MIB), ResultCapacity::new(8 * MIB));
        let whole = Arc::new(BatchHolds::default());
        let piece = || Holding::of_piece(Some(whole.clone()));
        let (one, other) = (piece(), piece());
        let capacities = capacities(MIB, &session, &engine);
        assert_eq!(one.hold(MIB / 2 + 1, &capacities), Ok(()));
        assert_eq!(other.hold(MIB / 2, &capacities), Err(Full::Batch));
        assert_eq!(one.full(&capacities), Some(Full::Batch));
        one.release(&session, &engine);
        assert_eq!(whole.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(other.hold(MIB, &capacities), Ok(()));
    }

    /// CC-4: what is taken result by result leaves its room to those to come, also after one that did not fit.
    #[test]
    fn what_is_taken_leaves_its_room() {
        let (session, engine) = (ResultCapacity::new(8 * MIB), ResultCapacity::new(8 * MIB));
        let whole = Arc::new(BatchHolds::default());
        let piece = Holding::of_piece(Some(whole.clone()));
        let capacities = capacities(2 * MIB, &session, &engine);
        for _ in 0..20 {
            assert_eq!(piece.hold(MIB, &capacities), Ok(()));
            assert_eq!(piece.hold(MIB + 1, &capacities), Err(Full::Batch));
            assert_eq!(piece.full(&capacities), Some(Full::Batch));
            piece.let_go(MIB, &session, &engine);
            assert_eq!((piece.full(&capacities), session.held(), engine.held()), (None, 0, 0));
        }
        assert_eq!(piece.hold(MIB, &capacities), Ok(()));
        piece.let_go(MIB / 2, &session, &engine);
        assert_eq!((session.held(), whole.bytes.load(Ordering::Relaxed)), (MIB / 2, MIB / 2));
        piece.release(&session, &engine);
        assert_eq!((session.held(), whole.bytes.load(Ordering::Relaxed)), (0, 0));
    }

    proptest! {
        /// Whatever fits and does not, on however many threads: nothing is over its bound, and all is given back.
        #[test]
        fn everything_is_given_back(sizes in prop::collection::vec(0..600_000_usize, 1..40)) {
            let (session, engine) = (ResultCapacity::new(2 * MIB), ResultCapacity::new(3 * MIB));
            let others = Holding::default();
            let holding = Holding::default();
            let capacities = capacities(4 * MIB, &session, &engine);
            thread::scope(|scope| {
                for sizes in sizes.chunks(10) {
                    let (capacities, holding, others) = (&capacities, &holding, &others);
                    scope.spawn(move || for (n, size) in sizes.iter().enumerate() {
                        let held = if n % 3 == 0 { others } else { holding };
                        let _ = held.hold(*size, capacities);
                        assert!(capacities.session.held() <= 2 * MIB && capacities.engine.held() <= 3 * MIB);
                    });
                }
            });
            holding.release(&session, &engine);
            others.release(&session, &engine);
            prop_assert_eq!((session.held(), engine.held()), (0, 0));
        }
    }
}
