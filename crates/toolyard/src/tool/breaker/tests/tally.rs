use crate::tool::breaker::tally::Tally;
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

/// CB-2: a tally counts only its own slice, and never moves back.
#[test]
fn a_tally_is_of_one_slice() {
    let tally = Tally::default();
    assert!(tally.add(0) && tally.add(0) && !tally.add(1));
    assert_eq!(tally.take(1), (0, 2));
    assert!(!tally.add(0) && tally.add(1));
    assert_eq!(tally.take(0), (1, 1));
    assert!(tally.add(1));
}

/// CB-2: an addition during a take is counted before it or after it, and only once.
#[test]
fn nothing_is_lost_between_two_takes() {
    const EACH: u32 = 200_000;
    let (tally, over) = (Tally::default(), AtomicBool::new(false));
    let take_all = || {
        let mut taken = 0;
        while !over.load(SeqCst) {
            taken += tally.take(0).1;
        }
        taken + tally.take(0).1
    };
    let add_all = || (0..EACH).filter(|_| tally.add(0)).count();
    let taken = thread::scope(|scope| {
        let taker = scope.spawn(take_all);
        let adders = [scope.spawn(add_all), scope.spawn(add_all)];
        let added: usize = adders.into_iter().map(|adder| adder.join().unwrap()).sum();
        over.store(true, SeqCst);
        (added, taker.join().unwrap())
    });
    assert_eq!(taken, (400_000, 2 * EACH));
}
