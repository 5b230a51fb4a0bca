use super::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};
use tokio::time::Instant;

fn shared(policy: BreakerPolicy) -> (Arc<SharedBreaker>, Instant) {
    let start = Instant::now();
    (Arc::new(SharedBreaker::new(policy, start)), start)
}

fn no_clock() -> Instant {
    panic!("the clock was read")
}

fn fail(breaker: &Arc<SharedBreaker>, now: Instant) -> Option<Transition> {
    let (slot, _) = breaker.admit(|| now, TIMEOUT);
    breaker.record(slot.unwrap(), Failure, || now, || EVEN)
}

/// SC-2: a slot moves into an attempt, so it has to be small.
#[test]
fn a_slot_is_small() {
    assert!(size_of::<Slot>() <= 24, "{}", size_of::<Slot>());
}

/// CB-7: while the breaker is closed, nothing reads a clock or counts references.
#[test]
fn a_closed_one_admits_without_a_clock() {
    let (breaker, start) = shared(BreakerPolicy::default());
    assert_eq!(breaker.peek(no_clock), Ok(()));
    let (slot, moved) = breaker.admit(no_clock, TIMEOUT);
    assert_eq!((Arc::strong_count(&breaker), moved), (1, None));
    breaker.record(slot.unwrap(), Success, || start, || panic!("chance has no part in it"));
    let ignored = breaker.admit(no_clock, TIMEOUT).0.unwrap();
    assert_eq!(breaker.record(ignored, Ignored, no_clock, || EVEN), None);
    assert_eq!(breaker.counts(start), Counts { successes: 1, failures: 0 });
}

/// T8, CB-5: a dropped probe gives its slot back, and the next call is the probe.
#[test]
fn a_dropped_probe_gives_its_slot_back() {
    let (breaker, start) = shared(BreakerPolicy::default());
    (0..5).for_each(|_| {
        fail(&breaker, start);
    });
    let now = start + 30 * SECOND;
    for first in [true, false] {
        let (probe, moved) = breaker.admit(|| now, TIMEOUT);
        assert_eq!(moved.is_some(), first);
        let refused = OpenFor { state: HalfOpen, retry_after: SECOND };
        assert_eq!(breaker.admit(|| now, TIMEOUT).0.unwrap_err(), refused);
        drop(probe);
        assert_eq!(breaker.peek(|| now), Ok(()));
    }
    let probe = breaker.admit(|| now, TIMEOUT).0.unwrap();
    assert!(probe.is_probe());
    assert_eq!(breaker.record(probe, Success, || now, || EVEN), moved(HalfOpen, Closed));
    assert!(!breaker.admit(no_clock, TIMEOUT).0.unwrap().is_probe());
}

/// CB-2: tallied successes are counted when a failure is weighed, each in its slice.
#[test]
fn tallied_successes_count_in_their_slices() {
    let (breaker, start) = shared(BreakerPolicy::default());
    for seconds in [0, 6, 12] {
        for _ in 0..2 {
            let slot = breaker.admit(no_clock, TIMEOUT).0.unwrap();
            breaker.record(slot, Success, || start + seconds * SECOND, || EVEN);
        }
    }
    (0..4).for_each(|_| assert_eq!(fail(&breaker, start + 53 * SECOND), None));
    assert_eq!(breaker.counts(start + 59 * SECOND).successes, 6);
    assert_eq!(breaker.counts(start + 60 * SECOND).successes, 4);
    assert_eq!(fail(&breaker, start + 66 * SECOND), moved(Closed, Open));
    assert_eq!(breaker.counts(start + 66 * SECOND), Counts { successes: 2, failures: 5 });
}

/// CB-2: threads that succeed and fail side by side, over several slices, lose no result and misplace none.
#[test]
fn threads_lose_no_count() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let policy = BreakerPolicy::default().with_failures_min(u32::MAX);
    let (breaker, start) = shared(policy);
    let millis = AtomicU64::new(0);
    // Results by slice, at the times that the threads reported to the breaker.
    let told: Vec<[AtomicU64; 2]> = (0..10).map(|_| Default::default()).collect();
    let work = || {
        for round in 0..EACH {
            let at = millis.fetch_add(1, Relaxed) * 59_999 / (THREADS * EACH);
            let now = start + Duration::from_millis(at);
            let failed = round % 3 == 0;
            let slot = breaker.admit(no_clock, TIMEOUT).0.unwrap();
            breaker.record(slot, if failed { Failure } else { Success }, || now, || EVEN);
            told[usize::try_from(at / 6000).unwrap()][usize::from(failed)].fetch_add(1, Relaxed);
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    for gone in 0..=10_u32 {
        let now = start + 54 * SECOND + gone * 6 * SECOND;
        let left = &told[usize::try_from(gone).unwrap()..];
        let sum = |failed: usize| left.iter().map(|slice| slice[failed].load(Relaxed)).sum::<u64>();
        assert_eq!(breaker.counts(now), Counts { successes: sum(0), failures: sum(1) }, "{gone} gone");
    }
}

/// CB-5, I8: when many threads arrive at once after the open time, one of them is the probe.
#[test]
fn one_of_many_threads_is_the_probe() {
    let (breaker, start) = shared(BreakerPolicy::default());
    (0..5).for_each(|_| {
        fail(&breaker, start);
    });
    let now = start + 30 * SECOND;
    let (moves, probes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let come = || {
        let (slot, moved) = breaker.admit(|| now, TIMEOUT);
        moves.fetch_add(usize::from(moved.is_some()), Relaxed);
        probes.fetch_add(usize::from(slot.is_ok()), Relaxed);
        slot
    };
    let slots: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((moves.into_inner(), probes.into_inner()), (1, 1));
    drop(slots);
    assert_eq!(breaker.peek(|| now), Ok(()));
}

/// CB-10: an operator's change reaches callers that only read the gate.
#[test]
fn the_gate_follows_an_operator() {
    let (breaker, start) = shared(BreakerPolicy::DISABLED);
    assert_eq!(breaker.force_open(), moved(Closed, ForcedOpen));
    assert_eq!(breaker.peek(|| start).unwrap_err().state, ForcedOpen);
    assert_eq!(breaker.force_closed(), moved(ForcedOpen, ForcedClosed));
    assert_eq!(breaker.peek(no_clock), Ok(()));
    assert_eq!(breaker.reset(), [Transition { from: ForcedClosed, to: Closed }]);
    assert_eq!((breaker.state(), breaker.peek(no_clock)), (Closed, Ok(())));
}
