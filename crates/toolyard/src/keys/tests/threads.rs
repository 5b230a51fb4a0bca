//! Many threads at once.

use super::*;
use std::{
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// ID-3: of many calls that arrive at once with one key, exactly one leads.
#[test]
fn one_of_many_leads() {
    let tree = Tree::new(KeyBounds::default());
    let (led, start) = (AtomicU32::new(0), Barrier::new(16));
    thread::scope(|scope| {
        for number in 0..16 {
            let (tree, led, start) = (&tree, &led, &start);
            scope.spawn(move || {
                start.wait();
                match tree.reserve("k", 0, true, number) {
                    Reserved::Lead(_) => led.fetch_add(1, Ordering::Relaxed),
                    Reserved::Join(_) => 0,
                    other => panic!("{other:?}"),
                };
            });
        }
    });
    assert_eq!(led.into_inner(), 1);
    assert_eq!(tree.held(), (1, 1, 0));
}

/// ID-8: with many threads at bounds that are constantly reached, nothing hangs and all counts balance.
#[test]
fn counts_come_out_even() {
    let bounds = KeyBounds { live_max: 8, bytes_max: 50, tombstones_max: 20, ..KeyBounds::default() };
    let tree = Tree::new(bounds);
    thread::scope(|scope| {
        for thread in 0..4u32 {
            let tree = &tree;
            scope.spawn(move || {
                for turn in 0..2_000u32 {
                    let key = format!("{}", (turn * 7 + thread) % 40);
                    if matches!(tree.reserve(&key, 0, turn % 3 == 0, turn), Reserved::Lead(_)) {
                        match turn % 5 {
                            0 => tree.forget(&key),
                            _ => tree.complete(&key, keep(turn, (turn % 30) as usize, turn % 2 == 0)),
                        }
                    }
                }
            });
        }
    });
    let map = tree.keys.map();
    let live = map.iter().filter(|entry| !matches!(entry.state, KeyState::Tombstone)).count();
    let lasting = map.iter().filter(|entry| entry.is_lasting).count();
    let (held_live, held_lasting, bytes) = tree.held();
    assert_eq!((held_live, held_lasting), (live, lasting));
    assert!(live <= 8 && lasting <= 20 && bytes <= 50);
}
