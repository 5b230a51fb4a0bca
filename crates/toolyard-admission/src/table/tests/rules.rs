//! The rules for counting and order, one by one.

use super::*;
use crate::PoolLoad;

/// CC-1: all of a need or nothing: a unit that is free stays free while another is not.
#[test]
fn a_need_is_granted_whole_or_not_at_all() {
    let (mut table, units) = table(&[1, 1]);
    let both = Need::of(units[0], Some(units[1]), None);
    assert!(table.try_grant(&ask(1, Need::of(units[1], None, None))).is_some());
    assert!(table.try_grant(&ask(2, both)).is_none());
    let first = ask(3, Need::of(units[0], None, None));
    assert!(table.try_grant(&first).is_some(), "nothing is held by the one that was refused");
}

/// CC-1: a tree cap counts along with the other units.
#[test]
fn a_tree_cap_bounds_what_runs_under_a_session() {
    let (mut table, units) = table(&[9]);
    let tree = table.open(UnitKind::Tree, 2);
    let need = Need::of(units[0], None, None).in_tree(tree);
    assert_eq!([(); 3].map(|()| table.try_grant(&ask(1, need)).is_some()), [true, true, false]);
    assert_eq!(table.kind(tree), Some(UnitKind::Tree));
    (0..2).for_each(|_| table.finish(need, None, START));
    table.close_unit(tree);
    assert_eq!(table.kind(tree), None, "what was closed is not taken for what is opened in its place");
    assert_ne!(table.open(UnitKind::Tree, 1), tree);
}

/// CC-3: first in, first out within a lane; a head that cannot start blocks only its own lane.
#[test]
fn a_blocked_head_blocks_its_own_lane_only() {
    let (mut table, units) = table(&[1, 1]);
    let (wide, limited) = (Need::of(units[0], None, None), Need::of(units[0], Some(units[1]), None));
    go(&mut table, ask(1, limited), 0);
    wait(&mut table, ask(1, limited), 0, 10);
    wait(&mut table, ask(1, limited), 0, 11);
    wait(&mut table, ask(1, wide), 0, 20);
    table.finish(limited, None, START);
    assert_eq!(granted(&mut table), [10]);
    table.finish(limited, None, START);
    assert_eq!(granted(&mut table), [11], "both can go: the older one");
    let tool = Need::of(units[1], None, None);
    table.finish(Need::of(units[0], None, None), None, START);
    assert_eq!(granted(&mut table), [20], "the tool is still out");
    table.finish(tool, None, START);
}

/// T12: a session with a thousand waiting calls does not starve one with a single call.
#[test]
fn sessions_take_turns() {
    let (mut table, units) = table(&[4]);
    let read = Need::of(units[0], None, None);
    for _ in 0..4 {
        go(&mut table, ask(1, read), 0);
    }
    for waiter in 0..996 {
        wait(&mut table, ask(1, read), 0, waiter);
    }
    wait(&mut table, ask(2, read), 0, 5000);
    let mut before = 0;
    loop {
        table.finish(read, None, START);
        match granted(&mut table)[..] {
            [5000] => break,
            _ => before += 1,
        }
    }
    assert!(before <= 4, "B started after {before} more of A");
}

/// CC-3: a session of priority 4 has four calls granted for each one of a session of priority 1.
#[test]
fn a_session_goes_as_often_as_its_weight() {
    let (mut table, units) = table(&[1]);
    let read = Need::of(units[0], None, None);
    table.set_weight(1, 4);
    table.set_weight(2, 2);
    go(&mut table, ask(9, read), 0);
    for _ in 0..20 {
        for root in 1..=3 {
            wait(&mut table, ask(u64::from(root), read), 0, root);
        }
    }
    let mut order = Vec::new();
    for _ in 0..14 {
        table.finish(read, None, START);
        order.extend(granted(&mut table));
    }
    assert_eq!(order, [1, 1, 1, 1, 2, 2, 3, 1, 1, 1, 1, 2, 2, 3]);
}

/// CC-3: within a session deeper calls go first, then the oldest.
#[test]
fn what_was_begun_is_finished_first() {
    let (mut table, units) = table(&[1]);
    let read = Need::of(units[0], None, None);
    go(&mut table, ask(1, read), 0);
    for (waiter, depth) in [(1, 0), (2, 1), (3, 3), (4, 1)] {
        wait(&mut table, Ask { depth, ..ask(1, read) }, 0, waiter);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        table.finish(read, None, START);
        order.extend(granted(&mut table));
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

/// CC-3: sessions that return with one call at a time do not pass a session with several calls in line.
#[test]
fn a_session_that_comes_back_goes_behind_those_who_wait() {
    const LOOPING: [u64; 2] = [1, 2];
    const PATIENT: u64 = 3;
    let (mut table, units) = table(&[1]);
    let read = Need::of(units[0], None, None);
    go(&mut table, ask(LOOPING[0], read), 0);
    let mut running = LOOPING[0];
    wait(&mut table, ask(LOOPING[1], read), 0, 2);
    for _ in 0..3 {
        wait(&mut table, ask(PATIENT, read), 0, 3);
    }
    let mut order = Vec::new();
    for _ in 0..12 {
        table.finish(read, None, START);
        let next = u64::from(granted(&mut table)[0]);
        if LOOPING.contains(&running) {
            wait(&mut table, ask(running, read), 0, u32::try_from(running).unwrap());
        }
        running = next;
        order.push(next);
    }
    let last = order.iter().rposition(|session| *session == PATIENT).unwrap();
    assert_eq!(order.iter().filter(|session| **session == PATIENT).count(), 3);
    assert!(last < 9, "three sessions take turns: {order:?}");
    assert!(LOOPING.iter().all(|session| order[..6].contains(session)), "nobody starves: {order:?}");
}

/// CL-6: a unit opened after an operator's resize or pause has that width or pause.
#[test]
fn a_unit_opens_as_its_class_stands() {
    let mut table = Table::<u32>::new([20, 1, 10], 10, 10);
    table.resize_class(ToolClass::Concurrent, 2);
    settle_all(&mut table, START);
    table.pause_class(ToolClass::Concurrent, true);
    settle_all(&mut table, START);
    let need = Need::of(table.open_class(ToolClass::Concurrent), None, None);
    assert!(table.try_grant(&ask(1, need)).is_none());
    table.pause_class(ToolClass::Concurrent, false);
    settle_all(&mut table, START);
    assert_eq!([(); 3].map(|()| table.try_grant(&ask(1, need)).is_some()), [true, true, false]);
    let later = Need::of(table.open_class(ToolClass::Concurrent), None, None);
    assert_eq!([(); 3].map(|()| table.try_grant(&ask(2, later)).is_some()), [true, true, false]);
}

/// CL-8: a tool is replaced by one with another bound.
#[test]
fn a_unit_that_is_widened_lets_more_go() {
    let mut table = Table::new([20, 1, 10], 10, 10);
    let read = table.open_class(ToolClass::Read);
    let tool = table.open(UnitKind::Tool(Reach::Engine), 1);
    let need = Need::of(read, Some(tool), None);
    go(&mut table, ask(1, need), 0);
    for waiter in 0..3 {
        wait(&mut table, ask(1, need), 0, waiter);
    }
    table.resize_unit(tool, 3, START);
    assert_eq!(granted(&mut table), [0, 1]);
    table.resize_unit(tool, 1, START);
    (0..2).for_each(|_| table.finish(need, None, START));
    assert!(granted(&mut table).is_empty(), "one still runs");
    table.finish(need, None, START);
    assert_eq!(granted(&mut table), [2]);
}

/// CL-6: a pool is widened, paused and resumed.
#[test]
fn a_wider_pool_lets_more_go_and_a_paused_one_none() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    go(&mut table, ask(1, need), 0);
    for waiter in 0..4 {
        wait(&mut table, ask(1, need), 0, waiter);
    }
    table.resize_class(ToolClass::Read, 3);
    settle_all(&mut table, START);
    assert_eq!(granted(&mut table), [0, 1]);
    table.pause_class(ToolClass::Read, true);
    settle_all(&mut table, START);
    table.finish(need, None, START);
    assert!(granted(&mut table).is_empty());
    assert!(table.try_grant(&ask(2, need)).is_none());
    table.pause_class(ToolClass::Read, false);
    settle_all(&mut table, START);
    assert_eq!(granted(&mut table), [2]);
}

/// CC-3: the work of a release does not grow with the number of waiting lanes.
#[test]
fn a_release_looks_at_no_more_lanes_than_it_serves() {
    const LANES: u64 = 50_000;
    let mut table = Table::new([1; 3], usize::MAX, usize::MAX);
    let read = Need::of(table.open_class(ToolClass::Read), None, None);
    let lease = Need::serial(table.open_lease(Scope::Named("db".into())), None, None);
    go(&mut table, ask(0, read), 0);
    let mut entry = go(&mut table, ask(0, lease), 0);
    for root in 1..=LANES {
        wait(&mut table, ask(root, read), 0, u32::try_from(root).unwrap());
        wait(&mut table, ask(root, lease), 0, u32::try_from(root).unwrap());
    }
    assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 1, queued: 50_000 });
    assert_eq!(table.load(ToolClass::Serial), PoolLoad { running: 1, queued: 50_000 });
    // If every lane were looked at, this would take over a thousand million looks.
    for root in 1..=LANES {
        table.finish(read, None, START);
        assert_eq!(granted(&mut table), [u32::try_from(root).unwrap()]);
        table.finish(lease, entry, START);
        entry = table.take_granted().pop().unwrap().entry;
    }
    assert_eq!(table.load(ToolClass::Serial), PoolLoad { running: 1, queued: 0 });
}

/// CC-4: both bounds of the queue, distinguished.
#[test]
fn the_queue_is_bounded() {
    let mut table = Table::new([1; 3], 3, 2);
    let need = Need::of(table.open_class(ToolClass::Read), None, None);
    go(&mut table, ask(1, need), 0);
    wait(&mut table, ask(1, need), 0, 1);
    wait(&mut table, ask(1, need), 0, 2);
    let full = |queue_max| Asked::Refused(Refusal::QueueFull { queue_max });
    assert_eq!(table.admit(&ask(1, need), START, 3), full(2));
    wait(&mut table, ask(2, need), 0, 4);
    assert_eq!(table.admit(&ask(3, need), START, 5), full(3));
    assert_eq!(table.waiting_by_root.len(), 2, "of a session that may not wait nothing is kept");
}

/// CC-9: a cancelled waiter leaves at once and frees its place.
#[test]
fn a_cancelled_waiter_is_never_granted() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    go(&mut table, ask(1, need), 0);
    let tickets = [0, 1, 2].map(|waiter| wait(&mut table, ask(1, need), 0, waiter));
    assert_eq!(table.cancel(tickets[1], START), Some(1));
    assert_eq!(table.cancel(tickets[1], START), None);
    assert_eq!(table.cancel(tickets[0], START), Some(0));
    table.finish(need, None, START);
    assert_eq!(granted(&mut table), [2]);
    assert_eq!(table.cancel(tickets[2], START), None, "it runs");
    table.finish(need, None, START);
    assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 0, queued: 0 });
}

/// CC-9: waiters that left take no memory, however many there were between two that stay.
#[test]
fn those_who_left_take_no_room() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    go(&mut table, ask(1, need), 0);
    wait(&mut table, ask(1, need), 0, 0);
    let mut last = wait(&mut table, ask(1, need), 0, 1);
    for waiter in 2..10_000 {
        let next = wait(&mut table, ask(1, need), 0, waiter);
        assert!(table.cancel(last, START).is_some());
        last = next;
    }
    assert!(table.lanes.iter().all(|lane| lane.places() < 10));
}

/// CC-3b: a call that has waited over 2 s is not passed any more: what is free of its need is held back for it.
#[test]
fn who_waits_too_long_is_passed_no_more() {
    let (mut table, units) = table(&[2, 1]);
    let (one, both) = (Need::of(units[0], None, None), Need::of(units[0], Some(units[1]), None));
    let tool = Need::of(units[1], None, None);
    go(&mut table, ask(1, tool), 0);
    wait(&mut table, ask(2, both), 0, 20);
    go(&mut table, ask(3, one), 1999); // passes the waiter: one of the two is left
    wait_or_go_is(&mut table, ask(3, one), 2000, true);
    table.finish(one, None, at(2001));
    wait(&mut table, ask(3, one), 2001, 30);
    assert!(table.lines(Moment(2_001_000)).iter().any(|line| line.reserves));
    table.finish(tool, None, at(2002));
    assert_eq!(granted(&mut table), [20]);
}

fn wait_or_go_is(table: &mut Table<u32>, ask: Ask, now: u64, goes: bool) {
    let asked = table.admit(&ask, at(now), 99);
    assert_eq!(matches!(asked, Asked::Granted(_)), goes, "{asked:?}");
}

/// CC-3b, CC-9: when a call with a reservation leaves, the calls that it held back can start.
#[test]
fn a_reservation_ends_with_its_call() {
    let (mut table, units) = table(&[1, 1]);
    let (one, both) = (Need::of(units[0], None, None), Need::of(units[0], Some(units[1]), None));
    go(&mut table, ask(1, Need::of(units[1], None, None)), 0);
    let aged = wait(&mut table, ask(2, both), 0, 20);
    wait(&mut table, ask(2, both), 0, 21);
    wait(&mut table, ask(3, one), 2001, 30);
    assert_eq!(table.cancel(aged, at(2001)), Some(20));
    assert_eq!(granted(&mut table), [0; 0], "the next of its lane is as old");
    wait(&mut table, ask(3, one), 2002, 31);
    table.finish(Need::of(units[1], None, None), None, at(2002));
    assert_eq!(granted(&mut table), [21]);
    table.finish(both, None, at(2002));
    assert_eq!(granted(&mut table), [30]);
}

/// CC-3b: a call that waits for a lease it cannot push holds nothing back.
#[test]
fn nothing_is_held_back_for_who_waits_for_a_lease() {
    let mut table = Table::new([1; 3], 100, 100);
    let (lease, tool) = (table.open_lease(Scope::Tree), table.open(UnitKind::Tool(Reach::Engine), 1));
    let serial = Need::serial(lease, Some(tool), None);
    let entry = go(&mut table, ask(1, Need::serial(lease, None, None)), 0);
    wait(&mut table, ask(1, serial), 0, 10);
    let tool_only = Need::serial(table.open_lease(Scope::Tree), Some(tool), None);
    let other = go(&mut table, ask(2, tool_only), 5000);
    table.finish(Need::default(), entry, at(5001));
    assert!(granted(&mut table).is_empty(), "its tool is out");
    wait(&mut table, ask(3, Need::serial(lease, None, None)), 5002, 30);
    table.finish(tool_only, other, at(5003));
    assert_eq!(granted(&mut table), [10], "from when it could step on the lease, that was held back");
}

/// CC-3b, CL-6: a call of a paused pool holds nothing back.
#[test]
fn a_call_of_a_paused_pool_holds_nothing_back() {
    let mut table = Table::new([1; 3], 100, 100);
    let (read, tool) = (table.open_class(ToolClass::Read), table.open(UnitKind::Tool(Reach::Engine), 1));
    let concurrent = table.open_class(ToolClass::Concurrent);
    table.pause_class(ToolClass::Read, true);
    settle_all(&mut table, START);
    wait(&mut table, ask(1, Need::of(read, Some(tool), None)), 0, 10);
    go(&mut table, ask(1, Need::of(concurrent, Some(tool), None)), 5000);
    table.pause_class(ToolClass::Read, false);
    settle_all(&mut table, at(5001));
    assert!(granted(&mut table).is_empty());
    table.finish(Need::of(concurrent, Some(tool), None), None, at(5002));
    assert_eq!(granted(&mut table), [10]);
}

/// Operators see what each lane waits for.
#[test]
fn the_lines_tell_who_waits_for_what() {
    let mut table = Table::new([1; 3], 100, 100);
    let (lease, read) = (table.open_lease(Scope::Tree), table.open_class(ToolClass::Read));
    go(&mut table, ask(1, Need::serial(lease, None, None)), 0);
    go(&mut table, ask(2, Need::of(read, None, None)), 0);
    wait(&mut table, ask(1, Need::serial(lease, None, None)), 0, 10);
    wait(&mut table, Ask { depth: 2, ..ask(3, Need::of(read, None, None)) }, 500, 11);
    wait(&mut table, Ask { depth: 2, ..ask(3, Need::of(read, None, None)) }, 500, 12);
    let lines = table.lines(Moment(1_000_000));
    let short: Vec<_> = lines.iter().map(|l| (l.root, l.depth, l.waiting, l.oldest.as_millis())).collect();
    assert_eq!(short, [(Some(1), 0, 1, 1000), (Some(3), 2, 2, 500)]);
    let stack = vec![(1, EntryState::Running)];
    assert_eq!(lines[0].missing, [Missing::Lease { scope: Scope::Tree, stack, paused: false }]);
    let full = Missing::Unit { kind: READ, in_use: 1, width: 1, zombies: 0, paused: false };
    assert_eq!(lines[1].missing, [full]);
}

/// A fork opens several units, so a unit must be small.
#[test]
fn what_there_are_many_of_is_small() {
    assert!(size_of::<Unit>() < 128);
}
