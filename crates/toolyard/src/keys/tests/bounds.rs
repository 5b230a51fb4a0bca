//! ID-8: what happens when room runs out.

use super::*;

fn small(live_max: usize, bytes_max: usize, tombstones_max: usize) -> Tree {
    Tree::new(KeyBounds { live_max, bytes_max, tombstones_max, ..KeyBounds::default() })
}

/// ID-8: the shipped default values.
#[test]
fn the_bounds_are_those_of_the_rule() {
    let bounds = KeyBounds::default();
    assert_eq!((bounds.live_max, bounds.bytes_max, bounds.tombstones_max), (10_000, 67_108_864, 100_000));
    assert_eq!(bounds.keep, Duration::from_secs(60));
}

/// ID-8: a tombstone is small.
#[test]
fn a_tombstone_is_small() {
    assert!(size_of::<(Name, Entry<Arc<()>, [u64; 9]>)>() <= 88);
}

/// ID-8: beyond the bound of entries the oldest result is evicted, leaving a tombstone unless it may be repeated.
#[test]
fn the_oldest_results_go_first() {
    let tree = small(3, 100, 10);
    tree.ran("a", 1, 1, true);
    tree.ran("b", 2, 1, false);
    tree.ran("c", 3, 1, false);
    tree.ran("d", 4, 1, false);
    assert_eq!(tree.peek("a", 0), Peek::Unknown);
    tree.ran("e", 5, 1, false);
    assert_eq!(tree.peek("b", 0), Peek::AlreadyExecuted);
    assert_eq!(tree.peek("b", 1), Peek::Mismatch);
    for (key, body) in [("c", 3), ("d", 4), ("e", 5)] {
        assert_eq!(tree.peek(key, 0), Peek::Replay(body));
    }
    assert_eq!(tree.held(), (3, 4, 3));
}

/// ID-8: beyond the bound of bytes the oldest results are evicted, as many as necessary.
#[test]
fn bytes_are_bounded() {
    let tree = small(10, 100, 10);
    tree.ran("a", 1, 40, false);
    tree.ran("b", 2, 40, true);
    tree.ran("c", 3, 90, false);
    assert_eq!(tree.peek("a", 0), Peek::AlreadyExecuted);
    assert_eq!(tree.peek("b", 0), Peek::Unknown);
    assert_eq!(tree.peek("c", 0), Peek::Replay(3));
    assert_eq!(tree.held(), (1, 2, 90));
}

/// ID-8: a result larger than the whole bound evicts nothing.
#[test]
fn a_result_too_large_is_not_kept() {
    let tree = small(10, 100, 10);
    tree.ran("a", 1, 100, false);
    tree.ran("b", 2, 101, false);
    tree.ran("c", 3, 101, true);
    assert_eq!(tree.peek("a", 0), Peek::Replay(1));
    assert_eq!(tree.peek("b", 0), Peek::AlreadyExecuted);
    assert_eq!(tree.peek("c", 0), Peek::Unknown);
    assert_eq!(tree.held(), (1, 2, 100));
}

/// ID-8: flights are never evicted. When they alone fill the bound, a mutating call is refused and any other runs
/// unkept.
#[test]
fn flights_are_never_evicted() {
    let tree = small(2, 100, 10);
    assert_eq!(tree.reserve("a", 0, true, 1), Reserved::Lead(1));
    assert_eq!(tree.reserve("b", 0, false, 2), Reserved::Lead(2));
    assert_eq!(tree.reserve("c", 0, true, 3), Reserved::Overloaded);
    assert_eq!(tree.reserve("c", 0, false, 3), Reserved::NotRetained);
    assert_eq!(tree.reserve("a", 0, true, 3), Reserved::Join(1));
    assert_eq!(tree.held(), (2, 1, 0));
    tree.forget("a");
    assert_eq!(tree.reserve("c", 0, true, 3), Reserved::Lead(3));
}

/// ID-8: tombstones are never evicted. When there is no room for one more, a mutating call is refused and any other
/// is kept as usual.
#[test]
fn tombstones_are_never_evicted() {
    let mut tree = small(10, 100, 2);
    tree.ran("a", 1, 1, false);
    tree.pass(61);
    tree.ran("b", 2, 1, false);
    assert_eq!(tree.reserve("c", 0, true, 3), Reserved::Overloaded);
    assert_eq!(tree.reserve("c", 0, false, 3), Reserved::Lead(3));
    assert_eq!(tree.peek("a", 0), Peek::AlreadyExecuted);
    assert_eq!(tree.peek("b", 0), Peek::Replay(2));
    assert_eq!(tree.held(), (2, 2, 1));
}

/// ID-8: a flight holds the place of its tombstone from the start, and gives it back when it leaves none.
#[test]
fn a_flight_has_the_place_of_its_tombstone() {
    let mut tree = small(10, 100, 1);
    assert_eq!(tree.reserve("a", 0, true, 1), Reserved::Lead(1));
    assert_eq!(tree.reserve("b", 0, true, 2), Reserved::Overloaded);
    tree.complete("a", keep(1, 1, true));
    assert_eq!(tree.reserve("b", 0, true, 2), Reserved::Lead(2));
    tree.pass(60);
    assert_eq!(tree.reserve("a", 0, true, 3), Reserved::Overloaded);
    tree.forget("b");
    assert_eq!(tree.reserve("a", 0, true, 3), Reserved::Lead(3));
}

/// ID-6, ID-8: expired results are swept when another call completes, and before anything is evicted.
#[test]
fn results_are_swept() {
    let mut tree = small(3, 100, 10);
    tree.ran("a", 1, 1, true);
    tree.ran("b", 2, 1, false);
    tree.pass(60);
    tree.ran("c", 3, 1, false);
    assert_eq!(tree.held(), (1, 2, 1));
    tree.pass(60);
    tree.ran("d", 4, 1, true);
    tree.ran("e", 5, 1, true);
    tree.ran("f", 6, 1, true);
    tree.ran("g", 7, 1, true);
    assert_eq!(tree.peek("d", 0), Peek::Unknown);
    assert_eq!(tree.peek("e", 0), Peek::Replay(5));
    assert_eq!(tree.held(), (3, 2, 3));
}
