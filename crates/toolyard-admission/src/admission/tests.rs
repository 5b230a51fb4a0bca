use super::*;
use crate::{PoolLoad, Reach, UnitKind};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
};

/// What a waiter does with its permit.
struct Does<F>(F);

impl<F: Fn(u32, Permit<'_>) + Send + Sync> Waiter for Does<F> {
    fn resume(self: Arc<Self>, _: u32) {
        unreachable!("nobody is parked here")
    }

    fn expire(self: Arc<Self>, _: u32) {
        unreachable!("no handler is given up here");
    }

    fn refuse(&self, _: u32) {
        unreachable!("nothing is nested here");
    }

    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>) {
        (self.0)(index, permit);
    }
}

const READ: ToolClass = ToolClass::Read;

/// An admission of one read at a time whose permit is taken, with `waiters` calls in line for it.
fn in_line(
    waiters: u32,
    does: impl Fn(u32, Permit<'_>) + Send + Sync + 'static,
) -> (&'static Admission, Permit<'static>) {
    // Never dropped, because a thread may keep a permit to its end.
    let admission: &'static Arc<Admission> = Box::leak(Box::new(Admission::new([1, 1, 1], 100_000, 100_000)));
    let need = Need::of(admission.open_class(READ), None, None);
    let permit = admission.try_admit(1, need).unwrap();
    let waiter = Arc::new(Does(does));
    for index in 0..waiters {
        assert!(matches!(
            admission.admit(&Ask::of_root(1, need), Instant::now(), (&waiter, index)),
            Ok(Admitted::Waiting { .. })
        ));
    }
    (admission, permit)
}

/// CL-8, SC-3: a queue of calls that cannot start is worked off, however long it is.
#[test]
fn a_long_queue_of_calls_that_cannot_start_takes_no_stack() {
    let started = Arc::new(AtomicU32::new(0));
    let count = started.clone();
    let (admission, permit) = in_line(10_000, move |index, permit| {
        assert_eq!(count.fetch_add(1, Ordering::Relaxed), index, "first in, first out");
        drop(permit);
    });
    let thread = std::thread::Builder::new().stack_size(64 * 1024);
    thread.spawn(move || drop(permit)).unwrap().join().unwrap();
    assert_eq!(started.load(Ordering::Relaxed), 10_000);
    assert_eq!(admission.load(READ), PoolLoad { running: 0, queued: 0 });
}

/// CC-3: a large change grants in slices. When the first call starts, most of the others are still in line.
#[test]
fn a_large_change_lets_the_lock_go_between_slices() {
    const WAITING: u32 = 10_000;
    let admission = Admission::new([1, 1, 1], 100_000, 100_000);
    let tool = admission.open(UnitKind::Tool(Reach::Engine), 1);
    let need = Need::of(tool, None, None);
    let permit = admission.try_admit(1, need).unwrap();
    let (seen, most_at_once) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (count, most, of) = (seen.clone(), most_at_once.clone(), admission.clone());
    let waiter = Arc::new(Does(move |index, permit: Permit<'_>| {
        assert_eq!(index, count.fetch_add(1, Ordering::Relaxed), "first in, first out");
        let waiting: usize = of.lines().iter().map(|line| line.waiting).sum();
        let granted = WAITING - u32::try_from(waiting).unwrap();
        most.fetch_max(granted - index, Ordering::Relaxed);
        std::mem::forget(permit);
    }));
    for index in 0..WAITING {
        let asked = admission.admit(&Ask::of_root(1, need), Instant::now(), (&waiter, index));
        assert!(matches!(asked, Ok(Admitted::Waiting { .. })));
    }
    admission.resize_unit(tool, usize::MAX).start();
    assert_eq!(seen.load(Ordering::Relaxed), WAITING);
    assert!(most_at_once.load(Ordering::Relaxed) <= 64, "{most_at_once:?} granted and not started");
    drop(permit);
}

/// CC-1: a start that panics releases its permit, and the calls behind it are started.
#[test]
fn a_start_that_panics_takes_nobody_with_it() {
    let started = Arc::new(AtomicU32::new(0));
    let count = started.clone();
    let (admission, permit) = in_line(5, move |index, permit| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_ne!(index, 1, "told to");
        drop(permit);
    });
    let released = catch_unwind(AssertUnwindSafe(|| drop(permit)));
    assert!(released.is_err(), "the panic is not hidden");
    assert_eq!(started.load(Ordering::Relaxed), 5);
    assert_eq!(admission.load(READ), PoolLoad { running: 0, queued: 0 });
}

/// CC-3, CC-1: the slices of a large change go on when every start panics, and end after the last one.
#[test]
fn starts_that_panic_end_no_large_change() {
    const WAITING: u32 = 1000;
    let admission = Admission::new([1, 1, 1], 100_000, 100_000);
    let tool = admission.open(UnitKind::Tool(Reach::Engine), 1);
    let need = Need::of(tool, None, None);
    let permit = admission.try_admit(1, need).unwrap();
    let started = Arc::new(AtomicU32::new(0));
    let count = started.clone();
    let waiter = Arc::new(Does(move |_, permit: Permit<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::mem::forget(permit);
        panic!("told to");
    }));
    for index in 0..WAITING {
        let asked = admission.admit(&Ask::of_root(1, need), Instant::now(), (&waiter, index));
        assert!(matches!(asked, Ok(Admitted::Waiting { .. })));
    }
    let resized = catch_unwind(AssertUnwindSafe(|| admission.resize_unit(tool, usize::MAX).start()));
    assert!(resized.is_err(), "the panic is not hidden");
    assert_eq!(started.load(Ordering::Relaxed), WAITING);
    drop(permit);
}

/// CC-1: a permit that a thread keeps to its very end is released like any other.
#[test]
fn a_permit_may_be_the_last_thing_a_thread_drops() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Permit<'static>>> = const { std::cell::RefCell::new(None) };
    }
    let (started, starts) = mpsc::channel();
    let (admission, permit) = in_line(3, move |index, permit| {
        drop(permit);
        started.send(index).unwrap();
    });
    std::thread::spawn(move || KEPT.set(Some(permit))).join().unwrap();
    assert_eq!(starts.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(admission.load(READ), PoolLoad { running: 0, queued: 0 });
}
