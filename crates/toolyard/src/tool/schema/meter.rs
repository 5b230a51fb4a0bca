//! Counts what the validation of arguments costs, and ends it when it costs too much.
//!
//! How often a validator looks at a value depends on the schema and on the arguments together: parts that are applied
//! twice at each of 40 levels look 2^40 times. No property of the schema alone tells. So every look is a step, and a
//! validation whose steps are used up is unwound from where it is, like a panic that nobody is told of.
//!
//! The stack is bounded in the same way, because a validator recurses over parts and data.

use crate::tasks::caught;
use std::{
    cell::{Cell, RefCell},
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The bounds of one validation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effort {
    /// How many steps it may take.
    pub(crate) steps: u64,
    /// How many bytes of stack it may use.
    pub(crate) stack: usize,
    /// How many steps it costs to match a short text with the patterns of a part.
    pub(crate) text: usize,
    /// Set from another thread when nobody waits for it any more.
    pub(crate) given_up: Option<Arc<AtomicBool>>,
}

/// A validation was ended because it had used up its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The lowest address that the stack may grow to. Stacks grow downwards wherever this runs.
    static FLOOR: Cell<usize> = const { Cell::new(0) };
    static TEXT: Cell<usize> = const { Cell::new(0) };
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

impl Effort {
    /// Runs `work`, which takes its [`steps`](step) from here.
    pub(crate) fn bound<T>(self, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
        LEFT.set(self.steps);
        FLOOR.set(here().saturating_sub(self.stack));
        TEXT.set(self.text);
        GIVEN_UP.set(self.given_up);
        let done = caught(work);
        LEFT.set(u64::MAX);
        FLOOR.set(0);
        GIVEN_UP.set(None);
        done.map_err(|panic| match panic.is::<Exhausted>() {
            true => Exhausted,
            false => panic.resume(),
        })
    }
}

/// Takes steps. Does not return if they are used up.
pub(crate) fn step(steps: usize) {
    let left = LEFT.get().checked_sub(steps as u64);
    let is_given_up =
        || GIVEN_UP.with_borrow(|flag| flag.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)));
    match left {
        Some(left) if here() >= FLOOR.get() && !is_given_up() => LEFT.set(left),
        // Unlike a panic, this is reported by no hook.
        _ => resume_unwind(Box::new(Exhausted)),
    }
}

/// Takes the steps for a text that patterns may be matched with.
pub(crate) fn step_for_text(text: &str) {
    /// Bytes that are matched in the time of a short text.
    const SHORT: usize = 1 << 10;
    step(1 + TEXT.get() * (1 + text.len() / SHORT));
}

/// About where the stack ends now.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(steps: u64) -> Effort {
        Effort { steps, stack: 64 << 10, text: 0, given_up: None }
    }

    #[test]
    fn work_ends_when_its_steps_are_used_up() {
        let taken = Cell::new(0);
        let forever = || loop {
            step(2);
            taken.set(taken.get() + 2);
        };
        assert_eq!(effort(100).bound::<()>(forever), Err(Exhausted));
        assert_eq!(taken.get(), 100);
        assert_eq!(effort(100).bound(|| step(100)), Ok(()));
        step(usize::MAX); // no bound outside
    }

    #[test]
    fn work_ends_when_its_stack_is_used_up() {
        fn down(levels: u64) -> u64 {
            step(1);
            if levels == 0 { 0 } else { std::hint::black_box(down(levels - 1)) + 1 }
        }
        assert_eq!(effort(u64::MAX).bound(|| down(10)), Ok(10));
        assert_eq!(effort(u64::MAX).bound(|| down(1_000_000)), Err(Exhausted));
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        let given_up = Arc::new(AtomicBool::new(false));
        let effort = Effort { given_up: Some(given_up.clone()), ..effort(u64::MAX) };
        let work = || {
            step(1);
            given_up.store(true, Ordering::Relaxed);
            loop {
                step(1);
            }
        };
        assert_eq!(effort.bound::<()>(work), Err(Exhausted));
    }

    #[test]
    #[should_panic(expected = "of its own")]
    fn another_panic_goes_on() {
        let _ = effort(1).bound(|| panic!("of its own"));
    }
}
