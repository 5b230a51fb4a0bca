use super::*;
use proptest::prelude::*;

const READ: UnitKind = UnitKind::Class(ToolClass::Read);

fn table(widths: &[usize]) -> (Table<u32>, Vec<UnitId>) {
    let mut table = Table::new([1; 3], 1000, 1000);
    let units = widths.iter().map(|width| table.open(Unit::new(READ, *width, false))).collect();
    (table, units)
}

fn granted(table: &mut Table<u32>) -> Vec<u32> {
    table.take_granted().into_iter().map(|(waiter, _)| waiter).collect()
}

/// CC-1: all of a need or nothing: a unit that is free stays free while another is not.
#[test]
fn a_need_is_granted_whole_or_not_at_all() {
    let (mut table, units) = table(&[1, 1]);
    let both = Need::of(units[0], Some(units[1]), None);
    let second = Need::of(units[1], None, None);
    assert!(table.try_grant(1, second));
    assert!(!table.try_grant(2, both));
    assert!(
        table.try_grant(3, Need::of(units[0], None, None)),
        "nothing is held by the one that was refused"
    );
}

/// CC-3: first in, first out in a lane; a head that cannot go blocks its own lane only.
#[test]
fn a_blocked_head_blocks_its_own_lane_only() {
    let (mut table, units) = table(&[1, 1]);
    let (wide, limited) = (Need::of(units[0], None, None), Need::of(units[0], Some(units[1]), None));
    assert!(table.try_grant(1, limited));
    for waiter in [10, 11] {
        table.enqueue(1, limited, waiter).unwrap();
    }
    table.enqueue(1, wide, 20).unwrap();
    table.release(limited);
    let first = granted(&mut table);
    assert_eq!(first.len(), 1);
    table.release(if first == [10] { limited } else { wide });
    let second = granted(&mut table);
    assert_eq!([first, second].concat().iter().sum::<u32>(), 30, "10 and 20 went, 11 waits behind 10");
}

/// T12: a session with a thousand waiting calls does not starve one with a single call.
#[test]
fn sessions_take_turns() {
    let (mut table, units) = table(&[4]);
    let read = Need::of(units[0], None, None);
    for _ in 0..4 {
        assert!(table.try_grant(1, read));
    }
    for waiter in 0..996 {
        table.enqueue(1, read, waiter).unwrap();
    }
    table.enqueue(2, read, 5000).unwrap();
    let mut before = 0;
    loop {
        table.release(read);
        match granted(&mut table)[..] {
            [5000] => break,
            _ => before += 1,
        }
    }
    assert!(before <= 4, "B started after {before} more of A");
}

/// CC-3: sessions that come back with one call at a time do not pass one that has more of them in line.
#[test]
fn a_session_that_comes_back_goes_behind_those_who_wait() {
    const LOOPING: [u64; 2] = [1, 2];
    const PATIENT: u64 = 3;
    let (mut table, units) = table(&[1]);
    let read = Need::of(units[0], None, None);
    assert!(table.try_grant(LOOPING[0], read));
    let mut running = LOOPING[0];
    table.enqueue(LOOPING[1], read, 2).unwrap();
    for _ in 0..3 {
        table.enqueue(PATIENT, read, 3).unwrap();
    }
    let mut order = Vec::new();
    for _ in 0..12 {
        table.release(read);
        let next = u64::from(granted(&mut table)[0]);
        if LOOPING.contains(&running) {
            table.enqueue(running, read, u32::try_from(running).unwrap()).unwrap();
        }
        running = next;
        order.push(next);
    }
    let last = order.iter().rposition(|session| *session == PATIENT).unwrap();
    assert_eq!(order.iter().filter(|session| **session == PATIENT).count(), 3);
    assert!(last < 9, "three sessions take turns: {order:?}");
    assert!(LOOPING.iter().all(|session| order[..6].contains(session)), "nobody starves: {order:?}");
}

/// CL-6: a session opened after an operator's word has the width and the pause of that word.
#[test]
fn a_unit_opens_as_its_class_stands() {
    let mut table = Table::<u32>::new([20, 1, 10], 10, 10);
    table.resize_class(ToolClass::Concurrent, 2);
    table.pause_class(ToolClass::Concurrent, true);
    let need = Need::of(table.open_class(ToolClass::Concurrent), None, None);
    assert!(!table.try_grant(1, need));
    table.pause_class(ToolClass::Concurrent, false);
    assert_eq!([(); 3].map(|()| table.try_grant(1, need)), [true, true, false]);
    let later = Need::of(table.open_class(ToolClass::Concurrent), None, None);
    assert_eq!([(); 3].map(|()| table.try_grant(2, later)), [true, true, false]);
}

/// CL-8: a tool that was replaced by one with another bound.
#[test]
fn a_unit_that_is_widened_lets_more_go() {
    let mut table = Table::new([20, 1, 10], 10, 10);
    let read = table.open_class(ToolClass::Read);
    let tool = table.open_tool(1);
    let need = Need::of(read, Some(tool), None);
    assert!(table.try_grant(1, need));
    for waiter in 0..3 {
        table.enqueue(1, need, waiter).unwrap();
    }
    table.resize_unit(tool, 3);
    assert_eq!(granted(&mut table), [0, 1]);
    table.resize_unit(tool, 1);
    table.release(need);
    table.release(need);
    assert!(granted(&mut table).is_empty(), "one still runs");
    table.release(need);
    assert_eq!(granted(&mut table), [2]);
}

/// CC-3: the work of a release does not grow with the lanes that wait.
#[test]
fn a_release_looks_at_no_more_lanes_than_it_serves() {
    const LANES: u64 = 50_000;
    let mut table = Table::new([1; 3], usize::MAX, usize::MAX);
    let read = Need::of(table.open_class(ToolClass::Read), None, None);
    assert!(table.try_grant(0, read));
    for session in 1..=LANES {
        table.enqueue(session, read, u32::try_from(session).unwrap()).unwrap();
    }
    assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 1, queued: 50_000 });
    // Were every lane looked at, this would be over a thousand million looks.
    for session in 1..=LANES {
        table.release(read);
        assert_eq!(granted(&mut table), [u32::try_from(session).unwrap()]);
    }
    assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 1, queued: 0 });
}

/// CC-4: both bounds of the queue, told apart.
#[test]
fn the_queue_is_bounded() {
    let mut table = Table::new([1; 3], 3, 2);
    let unit = table.open_class(ToolClass::Read);
    let need = Need::of(unit, None, None);
    assert!(table.try_grant(1, need));
    table.enqueue(1, need, 1).unwrap();
    table.enqueue(1, need, 2).unwrap();
    assert_eq!(table.enqueue(1, need, 3), Err((2, 3)));
    table.enqueue(2, need, 4).unwrap();
    assert_eq!(table.enqueue(3, need, 5), Err((3, 5)));
    assert_eq!(table.waiting_by_session.len(), 2, "of a session that may not wait nothing is kept");
}

/// CC-9: a cancelled waiter leaves at once and its place is free.
#[test]
fn a_cancelled_waiter_is_never_granted() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    assert!(table.try_grant(1, need));
    let tickets: Vec<_> = (0..3).map(|waiter| table.enqueue(1, need, waiter).unwrap()).collect();
    assert_eq!(table.cancel(tickets[1]), Some(1));
    assert_eq!(table.cancel(tickets[1]), None);
    assert_eq!(table.cancel(tickets[0]), Some(0));
    table.release(need);
    assert_eq!(granted(&mut table), [2]);
    table.release(need);
    assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 0, queued: 0 });
}

#[test]
fn a_wider_pool_lets_more_go_and_a_paused_one_none() {
    let (mut table, units) = table(&[1]);
    let need = Need::of(units[0], None, None);
    assert!(table.try_grant(1, need));
    for waiter in 0..4 {
        table.enqueue(1, need, waiter).unwrap();
    }
    table.resize_class(ToolClass::Read, 3);
    assert_eq!(granted(&mut table), [0, 1]);
    table.pause_class(ToolClass::Read, true);
    table.release(need);
    assert!(granted(&mut table).is_empty());
    assert!(!table.try_grant(2, need));
    table.pause_class(ToolClass::Read, false);
    assert_eq!(granted(&mut table), [2]);
}

/// What a driver of the table may do.
#[derive(Debug, Clone)]
enum Step {
    Ask { session: u64, need: usize },
    Release(usize),
    Cancel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3u64, 0..5usize).prop_map(|(session, need)| Step::Ask { session, need }),
        3 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Cancel),
    ]
}

/// The units of a need, for a model that only counts.
const NEEDS: [&[usize]; 5] = [&[0], &[0, 1], &[2], &[2, 1], &[0, 1, 3]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// TS-1, I3, CC-1, CC-3, CC-9: against a model that only counts. No unit is over its width, a lane goes
    /// first in first out, nobody waits who could go, nobody is lost, and all is free in the end.
    #[test]
    fn the_table_agrees_with_a_model_that_counts(
        widths in proptest::array::uniform4(1..3usize),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut table = Table::new([1; 3], 10_000, 10_000);
        let units = widths.map(|width| table.open(Unit::new(READ, width, false)));
        let unit = |at: Option<&usize>| at.map(|at| units[*at]);
        let needs = NEEDS.map(|need| Need::of(units[need[0]], unit(need.get(1)), unit(need.get(2))));
        let mut in_use = [0usize; 4];
        let mut running: Vec<usize> = Vec::new();
        let mut waiting: Vec<(u32, u64, usize, Ticket)> = Vec::new();
        let fits = |in_use: &[usize; 4], need: usize| NEEDS[need].iter().all(|at| in_use[*at] < widths[*at]);
        for (number, step) in steps.into_iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            match step {
                Step::Ask { session, need } => {
                    let lane_waits = waiting.iter().any(|(_, s, n, _)| (*s, *n) == (session, need));
                    let expected = !lane_waits && fits(&in_use, need);
                    prop_assert_eq!(table.try_grant(session, needs[need]), expected);
                    if expected {
                        NEEDS[need].iter().for_each(|at| in_use[*at] += 1);
                        running.push(need);
                    } else {
                        let ticket = table.enqueue(session, needs[need], number).unwrap();
                        waiting.push((number, session, need, ticket));
                    }
                }
                Step::Release(at) if !running.is_empty() => {
                    let need = running.swap_remove(at % running.len());
                    NEEDS[need].iter().for_each(|at| in_use[*at] -= 1);
                    table.release(needs[need]);
                }
                Step::Cancel(at) if !waiting.is_empty() => {
                    let (number, _, _, ticket) = waiting.remove(at % waiting.len());
                    prop_assert_eq!(table.cancel(ticket), Some(number));
                }
                Step::Release(_) | Step::Cancel(_) => {}
            }
            for (waiter, _) in table.take_granted() {
                let at = waiting.iter().position(|(number, ..)| *number == waiter).unwrap();
                let (_, session, need, _) = waiting.remove(at);
                let first = waiting[..at].iter().all(|(_, s, n, _)| (*s, *n) != (session, need));
                prop_assert!(first, "a lane goes first in, first out");
                NEEDS[need].iter().for_each(|at| in_use[*at] += 1);
                running.push(need);
            }
            prop_assert!(in_use.iter().zip(&widths).all(|(used, width)| used <= width));
            let load = PoolLoad { running: in_use.iter().sum(), queued: waiting.iter().map(|w| NEEDS[w.2].len()).sum() };
            prop_assert_eq!(table.load(ToolClass::Read), load, "every unit here is of this class");
            let stuck = waiting.iter().find(|(_, _, need, _)| fits(&in_use, *need));
            prop_assert!(stuck.is_none(), "{stuck:?} could go and waits");
        }
        while let Some(need) = running.pop() {
            table.release(needs[need]);
            let granted = table.take_granted();
            for (waiter, _) in granted {
                let at = waiting.iter().position(|(number, ..)| *number == waiter).unwrap();
                running.push(waiting.remove(at).2);
            }
        }
        prop_assert!(waiting.is_empty(), "nobody is left behind");
        prop_assert_eq!(table.load(ToolClass::Read), PoolLoad { running: 0, queued: 0 });
    }
}
