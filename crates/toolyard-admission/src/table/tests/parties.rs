//! A lane compared with a plain list of its waiters.

use super::*;
use crate::store::{group::Groups, lane::Lane, party::Party};
use proptest::prelude::*;
use std::{cell::Cell, rc::Rc};

/// Shared by the waiters of a batch. The lane must never drop the last reference: the lane is changed under the
/// table's lock, and dropping a batch may need that lock too.
#[derive(Debug)]
struct Batch {
    number: u32,
    lane_is_changed: Rc<Cell<bool>>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        assert!(!self.lane_is_changed.get() || std::thread::panicking(), "dropped by the lane");
    }
}

#[derive(Debug, Clone)]
struct Call {
    batch: Rc<Batch>,
    index: u32,
}

impl Call {
    fn name(&self) -> (u32, u32) {
        (self.batch.number, self.index)
    }
}

impl PlaceInLine for Call {
    fn behind(self, places: u32) -> Self {
        Self { index: self.index + places, ..self }
    }
}

impl Newcomer<Call> for Call {
    fn is_behind(&self, first: &Call, places: u32) -> bool {
        Rc::ptr_eq(&self.batch, &first.batch) && first.index + places == self.index
    }

    fn into_first(self) -> Call {
        self
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// That many calls of a batch come, one directly behind the other.
    Come {
        batch: usize,
        calls: u32,
    },
    /// A waiter comes to another lane.
    Elsewhere,
    Time,
    Pop,
    /// One of all waiters so far leaves, if it is still waiting.
    Cancel(usize),
    /// That many leave, one after the other.
    CancelMany(usize, usize),
    TakeAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3usize, 1..9u32).prop_map(|(batch, calls)| Step::Come { batch, calls }),
        1 => Just(Step::Elsewhere),
        1 => Just(Step::Time),
        6 => Just(Step::Pop),
        12 => any::<usize>().prop_map(Step::Cancel),
        2 => (any::<usize>(), 1..20usize).prop_map(|(from, calls)| Step::CancelMany(from, calls)),
        1 => prop_oneof![4 => Just(Step::Time), 1 => Just(Step::TakeAll)],
    ]
}

/// A waiter: its number, its arrival time, its name.
type Arrival = (u64, u64, (u32, u32));

struct Pair {
    lane: Lane<Call>,
    batches: Vec<(Rc<Batch>, u32)>,
    /// The current waiters.
    list: Vec<Arrival>,
    /// The number of the last ticket.
    tickets: u64,
    now: u64,
    lane_is_changed: Rc<Cell<bool>>,
}

impl Pair {
    fn new() -> Self {
        let mut table: Table<u32> = Table::new([1; 3], 1, 1);
        let need = Need::of(table.open_class(ToolClass::Read), None, None);
        let lane = Lane::new(LaneKey { need, who: Who::Resume { entry: None } }, Groups::default());
        let lane_is_changed = Rc::new(Cell::new(false));
        let batch = |number| (Rc::new(Batch { number, lane_is_changed: lane_is_changed.clone() }), 0);
        Self {
            lane,
            batches: (0..3).map(batch).collect(),
            list: Vec::new(),
            tickets: 0,
            now: 0,
            lane_is_changed,
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Lane<Call>) -> T) -> T {
        self.lane_is_changed.set(true);
        let value = change(&mut self.lane);
        self.lane_is_changed.set(false);
        value
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Come { batch, calls } => (0..calls).for_each(|_| self.come(batch)),
            Step::Elsewhere => self.tickets += 1,
            Step::Time => self.now += 1,
            Step::Pop => self.pop(),
            Step::Cancel(which) => self.cancel(which),
            Step::CancelMany(from, calls) => {
                (0..calls).for_each(|more| self.cancel(from.wrapping_add(more)));
            }
            Step::TakeAll => {
                let all = self.change(Lane::take_all);
                let all: Vec<_> = all.iter().map(|(number, call)| (*number, call.name())).collect();
                assert_eq!(
                    all,
                    self.list.drain(..).map(|(number, _, name)| (number, name)).collect::<Vec<_>>()
                );
            }
        }
        self.compare();
    }

    fn come(&mut self, at: usize) {
        let (batch, index) = self.batches[at].clone();
        self.batches[at].1 += 1;
        self.tickets += 1;
        let (number, since) = (self.tickets, self.now);
        self.list.push((number, since, (batch.number, index)));
        let arrival = crate::store::party::Arrival { number, since: Moment(since), lineage: None };
        self.change(|lane| lane.push(arrival, Call { batch, index }));
    }

    fn pop(&mut self) {
        let head = self.change(Lane::pop);
        let expected = (!self.list.is_empty()).then(|| self.list.remove(0));
        let head = head.map(|head| (head.arrival.number, head.arrival.since.0, head.what.name()));
        assert_eq!(head, expected);
    }

    fn cancel(&mut self, which: usize) {
        let number = which as u64 % (self.tickets + 1);
        let at = self.list.iter().position(|(arrival, ..)| *arrival == number);
        assert_eq!(self.lane.holds(number), at.is_some());
        let left = self.change(|lane| lane.cancel(number));
        assert_eq!(left.map(|call| call.name()), at.map(|at| self.list.remove(at).2));
        assert!(!self.lane.holds(number));
    }

    fn compare(&self) {
        assert_eq!(self.lane.len(), self.list.len());
        let head = self.lane.head().map(|arrival| (arrival.number, arrival.since.0));
        assert_eq!(head, self.list.first().map(|(number, since, _)| (*number, *since)));
        let mark = self.tickets / 2;
        let until: Vec<_> = self.lane.until(mark).map(|call| call.name()).collect();
        let expected = self.list.iter().take_while(|(number, ..)| *number <= mark);
        assert_eq!(until, expected.map(|(_, _, name)| *name).collect::<Vec<_>>());
        // A waiter that left a party of its own costs two places: a number and a party.
        assert!(self.lane.places() <= 3 * self.list.len(), "{} places", self.lane.places());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// CC-3, CC-9: parties behave like individual waiters: the order is the same, whoever leaves from the middle.
    #[test]
    fn a_lane_agrees_with_a_list_of_those_who_wait(steps in proptest::collection::vec(step(), 1..80)) {
        let mut pair = Pair::new();
        steps.iter().for_each(|step| pair.run(step));
        // Only the waiters hold their batches now: each batch is dropped with its last waiter, not by the lane.
        pair.batches.clear();
        while !pair.list.is_empty() {
            pair.pop();
        }
        prop_assert_eq!(pair.lane.places(), 0);
    }
}

/// The calls of a batch take one place together, and each call that leaves from their middle adds one for its number.
#[test]
fn those_who_came_together_take_the_room_of_one() {
    let mut pair = Pair::new();
    (0..10_000).for_each(|_| pair.come(0));
    assert_eq!(pair.lane.places(), 1);
    assert_eq!(Rc::strong_count(&pair.batches[0].0), 2, "and hold their batch once");
    (2..12).for_each(|number| pair.cancel(number * 7));
    assert_eq!(pair.lane.places(), 11);
    (1..=5_000).for_each(|number| pair.cancel(number));
    assert_eq!(pair.lane.places(), 1, "those before the first are forgotten");
}

/// Every second member of a large party leaves. Once those that left outnumber the others, they are forgotten.
#[test]
fn a_party_parts_where_most_have_left() {
    let mut pair = Pair::new();
    (0..1_000).for_each(|_| pair.come(0));
    (1..500).for_each(|number| pair.cancel(number * 2));
    assert_eq!(pair.lane.places(), 500, "a number each");
    [101, 201].into_iter().for_each(|number| pair.cancel(number));
    assert_eq!((pair.lane.len(), pair.lane.places()), (499, 498), "a party each, but for the last two");
    pair.compare();
}

/// There is one party for each waiting batch, so it must be small.
#[test]
fn a_party_is_small() {
    assert_eq!(size_of::<Party<(std::sync::Arc<dyn Send>, u32)>>(), 56);
}
