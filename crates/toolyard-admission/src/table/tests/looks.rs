//! How many lanes and groups a change looks at. Counted, because time is not what a test may depend on.

use super::*;

const SESSIONS: u64 = 8_000;

/// A table for that many sessions, and its read unit.
fn of_many() -> (Table<u32>, UnitId) {
    let mut table = Table::new([2, 1, 1], usize::MAX, usize::MAX);
    let read = table.open_class(ToolClass::Read);
    (table, read)
}

/// The number of looks that a change takes.
fn looks<T>(table: &mut Table<u32>, change: impl FnOnce(&mut Table<u32>) -> T) -> usize {
    let before = table.looks.get();
    change(table);
    table.looks.get() - before
}

/// The most looks that a release of a read takes while others wait for narrow tools. The waiters of `need` are
/// sessions 1 to 8 000; session 0 reads, one call after the other.
fn most_looks_beside(table: &mut Table<u32>, read: UnitId, need: impl Fn(u64) -> Need) -> usize {
    let plain = Need::of(read, None, None);
    for root in 1..=SESSIONS {
        let waiter = u32::try_from(root).unwrap();
        wait(table, ask(root, need(root)), 0, waiter);
    }
    go(table, ask(0, plain), 0);
    for waiter in 0..100 {
        wait(table, ask(0, plain), 0, 1_000_000 + waiter);
    }
    let releases = (0..100).map(|round| {
        let taken = looks(table, |table| table.finish(plain, None, START));
        assert_eq!(granted(table), [1_000_000 + round], "the read that waits goes");
        taken
    });
    releases.skip(1).max().unwrap() // the first may put to sleep what has just come
}

/// CC-3: the waiters of one narrow tool of the engine cost the release of a read nothing.
#[test]
fn a_release_does_not_look_at_waiters_of_a_tool_that_is_in_use() {
    let (mut table, read) = of_many();
    let tool = table.open(UnitKind::Tool(Reach::Engine), 1);
    let narrow = Need::of(read, Some(tool), None);
    go(&mut table, ask(1, narrow), 0);
    let most = most_looks_beside(&mut table, read, |_| narrow);
    assert!(most <= 16, "{most} looks");
}

/// CC-3: and neither do those of tools that each agent has for itself, nor those of full sessions.
#[test]
fn a_release_does_not_look_at_waiters_of_what_their_own_agents_use() {
    let (mut table, read) = of_many();
    let concurrent = table.open_class(ToolClass::Concurrent);
    let own: Vec<_> = (0..=SESSIONS)
        .map(|root| match root % 2 {
            0 => (Some(table.open(UnitKind::Tool(Reach::Agent), 1)), None),
            _ => (None, Some(table.open(UnitKind::Session, 1))),
        })
        .collect();
    table.resize_unit(concurrent, usize::MAX, START);
    let of = |class, root: u64| Need::of(class, own[root as usize].0, own[root as usize].1);
    for root in 1..=SESSIONS {
        go(&mut table, ask(root, of(concurrent, root)), 0);
    }
    go(&mut table, ask(0, Need::of(read, None, None)), 0);
    let most = most_looks_beside(&mut table, read, |root| of(read, root));
    assert!(most <= 16, "{most} looks");
}

/// CC-3: a lane that slept is served in its turn as soon as what it slept at is free.
#[test]
fn a_lane_that_slept_is_served_in_its_turn() {
    let (mut table, read) = of_many();
    let tool = table.open(UnitKind::Tool(Reach::Agent), 1);
    let (plain, narrow) = (Need::of(read, None, None), Need::of(read, Some(tool), None));
    go(&mut table, ask(1, narrow), 0);
    go(&mut table, ask(2, plain), 0);
    wait(&mut table, ask(1, narrow), 0, 10);
    for waiter in 20..23 {
        wait(&mut table, ask(2, plain), 0, waiter);
    }
    table.finish(plain, None, START);
    assert_eq!(granted(&mut table), [20], "10 is first in turn and cannot go");
    table.finish(narrow, None, START);
    assert_eq!(granted(&mut table), [10], "its turn is the earlier one");
}

/// CC-3: widening the pools of 8 000 agents looks at no waiter more than a few times, grants no more than a slice at
/// once, and leaves nobody behind. A newcomer that needs nothing of it goes at once in between.
#[test]
fn a_resize_is_linear_and_grants_in_slices() {
    const WAITING: u32 = 3;
    let (mut table, read) = of_many();
    let pools: Vec<_> = (0..SESSIONS).map(|_| table.open_class(ToolClass::Concurrent)).collect();
    for (root, pool) in (0..).zip(&pools) {
        let need = Need::of(*pool, None, None);
        go(&mut table, ask(root, need), 0);
        for waiter in 0..WAITING {
            wait(&mut table, ask(root, need), 0, u32::try_from(root).unwrap() * WAITING + waiter);
        }
    }
    let all = usize::try_from(SESSIONS).unwrap() * WAITING as usize;
    let mut served = Vec::new();
    let taken = looks(&mut table, |table| {
        table.resize_class(ToolClass::Concurrent, 4);
        let mut has_more = true;
        while has_more {
            has_more = table.settle_slice(START);
            let slice = granted(table);
            assert!(slice.len() <= crate::store::backlog::SLICE, "{} in one slice", slice.len());
            served.extend(slice);
            let newcomer = Need::of(read, None, None);
            assert!(matches!(table.admit(&ask(1, newcomer), START, 0), Asked::Granted(_)));
            table.finish(newcomer, None, START);
        }
    });
    assert_eq!(served.len(), all);
    assert!(taken <= 30 * all, "{taken} looks for {all} grants");
    assert!(!table.has_waiters());
    served.sort_unstable();
    assert!(served.into_iter().eq(0..u32::try_from(all).unwrap()), "each once");
}

/// CC-3, CL-6: and so is the end of a pause of one pool with many waiters.
#[test]
fn the_end_of_a_pause_is_linear_and_grants_in_slices() {
    let mut table = Table::new([usize::MAX, 1, 1], usize::MAX, usize::MAX);
    let need = Need::of(table.open_class(ToolClass::Read), None, None);
    table.pause_class(ToolClass::Read, true);
    settle_all(&mut table, START);
    for root in 0..SESSIONS {
        for waiter in 0..3 {
            wait(&mut table, ask(root, need), 0, waiter);
        }
    }
    let mut slices = 0;
    let taken = looks(&mut table, |table| {
        table.pause_class(ToolClass::Read, false);
        slices = settle_all(table, START);
    });
    let all = table.take_granted().len();
    assert_eq!(all, 3 * usize::try_from(SESSIONS).unwrap());
    assert!(slices >= all / crate::store::backlog::SLICE, "{slices} slices");
    assert!(taken <= 30 * all, "{taken} looks for {all} grants");
}

/// CC-3: between two slices of a large change, a newcomer that needs what is still to be looked at waits behind those
/// who came before it.
#[test]
fn a_newcomer_between_two_slices_does_not_pass_who_is_still_to_be_looked_at() {
    let (mut table, pools) = of_full_pools(|_| None);
    table.resize_class(ToolClass::Concurrent, 2);
    assert!(table.settle_slice(START), "one slice does not settle all");
    let served = granted(&mut table);
    let owed = (0..SESSIONS).rev().find(|root| !served.contains(&u32::try_from(*root).unwrap())).unwrap();
    let need = Need::of(pools[usize::try_from(owed).unwrap()], None, None);
    let newcomer = u32::MAX;
    let of_another_lane = ask(SESSIONS, need);
    assert!(matches!(table.admit(&of_another_lane, START, newcomer), Asked::Waiting(_)));
    settle_all(&mut table, START);
    let rest = granted(&mut table);
    assert!(rest.contains(&u32::try_from(owed).unwrap()), "the one who came first goes first");
    assert!(!rest.contains(&newcomer), "and has taken the only place");
}

/// CC-3: a slice looks at few of the freed resources, also if nobody who waits there can go.
#[test]
fn a_slice_looks_at_few_resources_where_nobody_can_go() {
    let (mut table, pools) = of_full_pools(|table| Some(table.open(UnitKind::Session, 1)));
    let mut slices = 0;
    table.resize_class(ToolClass::Concurrent, 2);
    loop {
        let mut has_more = false;
        let taken = looks(&mut table, |table| has_more = table.settle_slice(START));
        assert!(granted(&mut table).is_empty(), "every session is full");
        assert!(taken <= 8 * crate::store::backlog::SLICE, "{taken} looks in one slice");
        slices += 1;
        if !has_more {
            break;
        }
    }
    assert!(
        slices >= pools.len() / crate::store::backlog::SLICE,
        "{slices} slices for {} pools",
        pools.len()
    );
}

/// A table with a concurrent pool of width one for each session; in each one call runs, and another waits whose number
/// is that of its session. Both need what `session` gives, too.
fn of_full_pools(session: impl Fn(&mut Table<u32>) -> Option<UnitId>) -> (Table<u32>, Vec<UnitId>) {
    let (mut table, _) = of_many();
    let mut pools = Vec::new();
    for root in 0..SESSIONS {
        let pool = table.open_class(ToolClass::Concurrent);
        let need = Need::of(pool, None, session(&mut table));
        go(&mut table, ask(root, need), 0);
        wait(&mut table, ask(root, need), 0, u32::try_from(root).unwrap());
        pools.push(pool);
    }
    (table, pools)
}

/// CC-3: a release between two slices lets nobody pass a call of another session that is still to be looked at.
#[test]
fn a_release_between_slices_passes_nobody() {
    let (mut table, _) = table(&[]);
    table.backlog.slice = 2;
    let (mine, other) = (table.open_class(ToolClass::Concurrent), table.open_class(ToolClass::Concurrent));
    let tool = table.open(UnitKind::Tool(Reach::Engine), 2);
    let plain = |class| Need::of(class, None, None);
    let with_tool = |class| Need::of(class, Some(tool), None);
    go(&mut table, ask(0, plain(mine)), 0);
    go(&mut table, ask(1, plain(other)), 0);
    for waiter in [1, 2] {
        wait(&mut table, ask(0, plain(mine)), 0, waiter);
    }
    for waiter in [10, 11] {
        wait(&mut table, ask(0, with_tool(mine)), 0, waiter);
    }
    wait(&mut table, ask(1, with_tool(other)), 0, 20);
    table.resize_class(ToolClass::Concurrent, 10);
    assert!(table.settle_slice(START));
    assert_eq!(granted(&mut table), [1, 2]);
    table.finish(plain(mine), None, START);
    assert!(granted(&mut table).is_empty(), "the next slice looks at all of them");
    settle_all(&mut table, START);
    let mut rest = granted(&mut table);
    rest.sort_unstable();
    assert_eq!(rest, [10, 20], "each session has had a turn at the tool");
}
