mod directed;
mod life;
mod looks;
mod model;
mod parties;
mod programs;
mod random;
mod rested;
mod rules;
mod search;
mod slab;
mod starve;
mod state_machine;
mod world;

use super::*;
use crate::{
    ids::LeaseId,
    lease::{EntryState, Scope},
    line::Missing,
    unit::{Reach, UnitKind},
};
use rested::assert_rested;

const READ: UnitKind = UnitKind::Class(ToolClass::Read);

fn table(widths: &[usize]) -> (Table<u32>, Vec<UnitId>) {
    let mut table = Table::new([1; 3], 1000, 1000);
    let units = widths.iter().map(|width| table.open(READ, *width)).collect();
    (table, units)
}

/// Waiters with consecutive numbers came together.
macro_rules! waits {
    ($($number:ty),*) => {$(
        impl PlaceInLine for $number {
            fn behind(self, places: u32) -> Self {
                self + <$number>::try_from(places).unwrap()
            }
        }

        impl Newcomer<$number> for $number {
            fn is_behind(&self, first: &$number, places: u32) -> bool {
                first.behind(places) == *self
            }

            fn into_first(self) -> $number {
                self
            }
        }
    )*};
}

waits!(u32, usize);

/// A call of a root session.
fn ask(root: u64, need: Need) -> Ask {
    Ask::of_root(root, need)
}

/// A moment in milliseconds.
fn at(millis: u64) -> impl Fn() -> Moment + Copy {
    move || Moment(millis * 1000)
}

const START: fn() -> Moment = Moment::default;

/// Settles what a large change has left, slice by slice. Returns the number of slices.
fn settle_all<W: PlaceInLine>(table: &mut Table<W>, now: impl Fn() -> Moment) -> usize {
    (1..).find(|_| !table.settle_slice(&now)).expect("a backlog ends")
}

/// Asks for admission and must have to wait.
fn wait(table: &mut Table<u32>, ask: Ask, now: u64, waiter: u32) -> Ticket {
    match table.admit(&ask, at(now), waiter) {
        Asked::Waiting(ticket) => ticket,
        other => panic!("{waiter} was to wait: {other:?}"),
    }
}

/// Asks for admission and must be granted at once.
fn go(table: &mut Table<u32>, ask: Ask, now: u64) -> Option<EntryId> {
    match table.admit(&ask, at(now), u32::MAX) {
        Asked::Granted(entry) => entry,
        other => panic!("{ask:?} was to go: {other:?}"),
    }
}

fn granted(table: &mut Table<u32>) -> Vec<u32> {
    table.take_granted().into_iter().map(|going| going.waiter).collect()
}
