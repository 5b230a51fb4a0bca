//! The rules, one by one.

use super::*;

/// ID-3: of two calls with one key, the first leads and the other shares its flight, and later its result.
#[test]
fn the_first_leads_and_the_next_joins() {
    let tree = Tree::new(KeyBounds::default());
    assert_eq!(tree.peek("k", 0), Peek::Unknown);
    assert_eq!(tree.reserve("k", 0, true, 1), Reserved::Lead(1));
    assert_eq!(tree.peek("k", 0), Peek::InFlight);
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::Join(1));
    tree.complete("k", keep(7, 1, false));
    assert_eq!(tree.peek("k", 0), Peek::Replay(7));
    assert_eq!(tree.reserve("k", 0, true, 3), Reserved::Replay(7));
}

/// ID-1: a key belongs to one tool.
#[test]
fn tools_do_not_share_keys() {
    let tree = Tree::new(KeyBounds::default());
    tree.ran("k", 1, 1, false);
    let other = tree.keys.reserve(&Name::new(text("other"), text("k")), of(9), tree.now, true, || 2);
    assert_eq!(bare(other), Reserved::Lead(2));
    let swapped = tree.keys.reserve(&Name::new(text("k"), tree.tool.clone()), of(9), tree.now, true, || 3);
    assert_eq!(bare(swapped), Reserved::Lead(3));
}

/// T6, ID-6: the stored result at +59 s, `already_executed` at +61 s.
#[test]
fn what_may_not_be_repeated_leaves_a_tombstone() {
    let mut tree = Tree::new(KeyBounds::default());
    tree.ran("k", 7, 1, false);
    tree.pass(59);
    assert_eq!(tree.peek("k", 0), Peek::Replay(7));
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::Replay(7));
    tree.pass(2);
    assert_eq!(tree.peek("k", 0), Peek::AlreadyExecuted);
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::AlreadyExecuted);
    tree.pass(1_000_000);
    tree.ran("another", 1, 1, false);
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::AlreadyExecuted);
}

/// T6, ID-6: an idempotent call runs again at +61 s.
#[test]
fn what_may_be_repeated_runs_again() {
    let mut tree = Tree::new(KeyBounds::default());
    tree.ran("k", 7, 1, true);
    tree.pass(59);
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::Replay(7));
    tree.pass(2);
    assert_eq!(tree.peek("k", 0), Peek::Unknown);
    assert_eq!(tree.reserve("k", 0, true, 2), Reserved::Lead(2));
    tree.complete("k", keep(8, 1, true));
    assert_eq!(tree.reserve("k", 0, true, 3), Reserved::Replay(8));
    assert_eq!(tree.held(), (1, 0, 1));
}

/// ID-6: a call that is not mutating leaves no tombstone, even if it completes as not idempotent.
#[test]
fn what_is_not_mutating_leaves_no_tombstone() {
    let mut tree = Tree::new(KeyBounds::default());
    assert_eq!(tree.reserve("a", 0, false, 1), Reserved::Lead(1));
    tree.complete("a", keep(1, 1, false));
    tree.pass(60);
    assert_eq!(tree.reserve("a", 0, false, 2), Reserved::Lead(2));
    assert_eq!(tree.held().1, 0);
}

/// T6, ID-2: while a key is known, other arguments are always a mismatch.
#[test]
fn other_arguments_are_a_mismatch_at_any_time() {
    let mut tree = Tree::new(KeyBounds::default());
    let is_mismatch = |tree: &Tree| {
        assert_eq!(tree.peek("k", 1), Peek::Mismatch);
        assert_eq!(tree.reserve("k", 1, true, 2), Reserved::Mismatch);
    };
    assert_eq!(tree.reserve("k", 0, true, 1), Reserved::Lead(1));
    is_mismatch(&tree);
    tree.complete("k", keep(7, 1, false));
    is_mismatch(&tree);
    tree.pass(59);
    is_mismatch(&tree);
    tree.pass(2);
    is_mismatch(&tree); // before it is swept
    tree.ran("another", 1, 1, false);
    is_mismatch(&tree); // and after
}

/// ID-2: once nothing is known of an idempotent key, other arguments may use it.
#[test]
fn a_key_that_is_gone_is_free() {
    let mut tree = Tree::new(KeyBounds::default());
    tree.ran("k", 7, 1, true);
    tree.pass(60);
    assert_eq!(tree.peek("k", 1), Peek::Unknown);
    assert_eq!(tree.reserve("k", 1, true, 2), Reserved::Lead(2));
}

/// ID-5: a call that never started is forgotten at once.
#[test]
fn what_is_forgotten_runs_again() {
    let tree = Tree::new(KeyBounds::default());
    assert_eq!(tree.reserve("a", 0, true, 1), Reserved::Lead(1));
    tree.forget("a");
    assert_eq!(tree.reserve("a", 1, true, 2), Reserved::Lead(2));
    tree.complete("a", Finished::Forget);
    assert_eq!(tree.peek("a", 0), Peek::Unknown);
    assert_eq!(tree.held(), (0, 0, 0));
}

/// ID-5: only a flight can be forgotten, and only a flight can complete.
#[test]
fn what_has_ended_does_not_end_again() {
    let tree = Tree::new(KeyBounds::default());
    tree.ran("k", 7, 1, false);
    tree.forget("k");
    tree.complete("k", keep(8, 1, true));
    tree.complete("unknown", keep(8, 1, true));
    assert_eq!(tree.peek("k", 0), Peek::Replay(7));
    assert_eq!(tree.held(), (1, 1, 1));
}

/// CL-7: a tree that uses no key allocates no map, even when it is asked for one.
#[test]
fn a_tree_without_keys_holds_nothing() {
    let tree = Tree::new(KeyBounds::default());
    assert_eq!(tree.peek("k", 0), Peek::Unknown);
    assert!(tree.keys.map.get().is_none());
    assert!(size_of::<Numbers>() <= 200, "{}", size_of::<Numbers>());
}
