//! The rules for leases and for parked handlers, one by one.

use super::*;
use crate::PoolLoad;

/// A table with one lease of a tree.
fn one_lease() -> (Table<u32>, Need) {
    let mut table = Table::new([1; 3], 100, 100);
    let lease = table.open_lease(Scope::Tree);
    (table, Need::serial(lease, None, None))
}

fn under(lineage: Option<EntryId>, depth: u8, need: Need) -> Ask {
    Ask { root: 1, depth, lineage, need }
}

/// CC-7: only a descendant of the top may push onto a stack that is not empty, and only while the top is lent.
#[test]
fn a_lease_is_lent_to_what_is_under_its_top() {
    let (mut table, need) = one_lease();
    let top = go(&mut table, ask(1, need), 0);
    let child = wait(&mut table, under(top, 1, need), 0, 10);
    wait(&mut table, ask(1, need), 0, 20);
    assert!(granted(&mut table).is_empty(), "the top runs");
    table.park(Need::default(), top, START);
    assert_eq!(granted(&mut table), [10], "a descendant, not a sibling");
    assert_eq!(table.cancel(child, START), None);
    wait(&mut table, under(top, 1, need), 0, 11);
    assert_eq!(table.load(ToolClass::Serial), PoolLoad { running: 1, queued: 2 });
}

/// CC-7, V2: a handler that has stopped keeps lending its lease to the calls under it until they are quiescent.
#[test]
fn a_handler_that_has_stopped_lends_its_lease() {
    let (mut table, need) = one_lease();
    let top = go(&mut table, ask(1, need), 0);
    wait(&mut table, ask(2, need), 0, 20);
    table.release(need, top, START);
    let child = go(&mut table, under(top, 1, need), 0);
    table.quiet(top.unwrap(), START);
    assert!(granted(&mut table).is_empty(), "from the middle of the stack: the child is on it still");
    table.finish(need, child, START);
    assert_eq!(granted(&mut table), [20]);
}

/// CC-6c: a serial handler resumes only as the top.
#[test]
fn a_serial_handler_resumes_as_the_top() {
    let (mut table, need) = one_lease();
    let top = go(&mut table, ask(1, need), 0);
    table.park(need, top, START);
    let child = go(&mut table, under(top, 1, need), 0);
    table.become_zombie(need, Need::default(), child, START);
    let Resumed::Waiting(ticket) = table.resume(need, top, START, 10) else {
        panic!("the child is above it");
    };
    assert!(table.is_behind_zombies(ticket), "CC-6c: it waits for what a zombie holds");
    assert_eq!(table.behind_zombies(table.last_ticket()), [10]);
    wait(&mut table, under(top, 1, need), 0, 11);
    table.zombie_ended(need, child, START);
    table.quiet(child.unwrap(), START);
    let going = table.take_granted();
    assert_eq!(going.iter().map(|going| (going.waiter, going.entry)).collect::<Vec<_>>(), [(10, top)]);
    assert_eq!(going[0].need, need);
}

/// CC-3: handlers that resume go before all calls, oldest first; those that cannot resume yet are passed over.
#[test]
fn resumes_go_first() {
    let (mut table, units) = table(&[1, 1]);
    let (one, both) = (Need::of(units[0], None, None), Need::of(units[0], Some(units[1]), None));
    go(&mut table, ask(1, one), 0);
    go(&mut table, ask(1, Need::of(units[1], None, None)), 0);
    wait(&mut table, ask(2, one), 0, 20);
    for (waiter, need) in [(30, both), (31, one), (32, one)] {
        assert!(matches!(table.resume(need, None, START, waiter), Resumed::Waiting(_)));
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        table.finish(one, None, at(9000));
        order.extend(granted(&mut table));
    }
    assert_eq!(order, [31, 32, 20], "30 needs what is out, and nothing is held back for it");
    table.finish(Need::of(units[1], None, None), None, START);
    table.finish(one, None, START);
    assert_eq!(granted(&mut table), [30]);
}

/// CL-6: a pause stops new calls, and a parked handler is already running.
#[test]
fn a_pause_does_not_hold_back_a_resume() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    go(&mut table, ask(1, need), 0);
    table.park(need, None, START);
    table.pause_class(ToolClass::Read, true);
    settle_all(&mut table, START);
    wait(&mut table, ask(1, need), 0, 10);
    assert_eq!(table.resume(need, None, START, 11), Resumed::Now);
    table.finish(need, None, START);
    assert!(granted(&mut table).is_empty());
}

/// CL-6: the pause of the serial class applies to every lease.
#[test]
fn leases_obey_the_pause_of_their_class() {
    let (mut table, need) = one_lease();
    let other = Need::serial(table.open_lease(Scope::Named("db".into())), None, None);
    table.pause_class(ToolClass::Serial, true);
    settle_all(&mut table, START);
    assert!(table.try_grant(&ask(1, need)).is_none());
    wait(&mut table, ask(1, need), 0, 10);
    wait(&mut table, ask(1, other), 9000, 11);
    table.pause_class(ToolClass::Serial, false);
    settle_all(&mut table, at(9000));
    assert_eq!(granted(&mut table), [10, 11]);
}

/// CC-6b, CC-9: a handler that is dropped while it waits to resume is parked again, then stopped.
#[test]
fn a_resume_can_be_cancelled() {
    let (mut table, units) = table(&[1]);
    let need = Need::serial(table.open_lease(Scope::Tree), Some(units[0]), None);
    let entry = go(&mut table, ask(1, need), 0);
    table.park(need, entry, START);
    let tool = Need::of(units[0], None, None);
    go(&mut table, ask(1, tool), 0);
    let Resumed::Waiting(ticket) = table.resume(need, entry, START, 10) else { panic!("its tool is out") };
    wait(&mut table, under(entry, 1, need), 0, 11);
    assert_eq!(table.cancel(ticket, START), Some(10));
    table.finish(tool, None, START);
    let going = table.take_granted();
    assert_eq!(going[0].waiter, 11, "parked again, it lends its lease");
    table.release(Need::default(), entry, START);
    table.finish(need, going[0].entry, START);
    table.quiet(entry.unwrap(), START);
    assert!(table.try_grant(&ask(1, need)).is_some());
}

/// CC-8: a call whose lineage holds a lease may wait for that of its nearest ancestor and for leases of a higher
/// rank. For any other lease it ends as soon as it cannot push onto it.
#[test]
fn a_nested_call_waits_for_what_ranks_above() {
    let mut table = Table::new([1; 3], 100, 100);
    let tree = Need::serial(table.open_lease(Scope::Tree), None, None);
    let [a, b] = ["a", "b"].map(|name| Need::serial(table.open_lease(Scope::Named(name.into())), None, None));
    let others = [tree, a, b].map(|need| go(&mut table, ask(9, need), 0));
    table.finish(a, others[1], START);
    let parent = go(&mut table, ask(1, a), 0);
    table.park(a, parent, START);
    wait(&mut table, under(parent, 1, b), 0, 10);
    let refused = Asked::Refused(Refusal::SerialNesting);
    assert_eq!(table.admit(&under(parent, 1, tree), START, 11), refused);
    table.finish(b, others[2], START);
    let inner = table.take_granted().pop().unwrap().entry;
    table.park(b, inner, START);
    assert_eq!(table.admit(&under(inner, 2, tree), START, 12), refused, "the tree ranks lowest");
    go(&mut table, under(inner, 2, a), 0); // its parked ancestor is the top there
    assert_eq!(table.admit(&under(inner, 2, a), START, 13), refused, "held higher up, and in use");
}

/// CC-8: a call that may not wait for a lease may wait for units while it could push, and ends when it cannot push
/// any more.
#[test]
fn who_may_not_wait_for_a_lease_ends_when_it_goes_to_another() {
    let mut table = Table::new([1; 3], 100, 100);
    let tree = Need::serial(table.open_lease(Scope::Tree), None, None);
    let tool = table.open(UnitKind::Tool(Reach::Engine), 1);
    let other = table.open_lease(Scope::Tree);
    let (nested, plain) = (Need::serial(other, Some(tool), None), Need::serial(other, None, None));
    let parent = go(&mut table, ask(1, tree), 0);
    table.park(tree, parent, START);
    go(&mut table, ask(3, Need::of(tool, None, None)), 0);
    for waiter in [10, 11] {
        wait(&mut table, under(parent, 1, nested), 0, waiter);
    }
    assert!(table.take_refused().is_empty(), "only a unit is missing");
    go(&mut table, ask(2, plain), 0);
    assert_eq!(table.take_refused(), [10, 11]);
    assert_eq!(table.load(ToolClass::Serial), PoolLoad { running: 1, queued: 0 });
}

/// V3: a waiter is behind zombies when they hold all it lacks. On a lease, entries above its own ancestor count and
/// those below do not.
#[test]
fn who_waits_behind_zombies_is_known() {
    let (mut table, need) = one_lease();
    let top = go(&mut table, ask(1, need), 0);
    let sibling = wait(&mut table, ask(1, need), 0, 10);
    table.park(need, top, START);
    let child = go(&mut table, under(top, 1, need), 0);
    let nephew = wait(&mut table, under(top, 1, need), 0, 11);
    table.become_zombie(need, Need::default(), child, START);
    assert!(table.is_behind_zombies(nephew));
    assert!(!table.is_behind_zombies(sibling), "the top is parked");
    table.release(Need::default(), top, START);
    table.listed(top.unwrap());
    assert!(table.is_behind_zombies(sibling), "V2: all that is left of the top are zombies");
    assert_eq!(table.behind_zombies(sibling.number), [10], "who came later has a time of his own");
}
