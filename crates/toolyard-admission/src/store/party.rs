//! Parties: waiters that came together, one directly behind the other and otherwise alike, as the calls of a run do.
//!
//! ```text
//!   lane   12 13  ×  × 16 17 18 │ 31 │ 40 41 42      three parties; two members have left the middle of the first
//! ```
//!
//! A party takes the memory of one waiter, whatever its size: the value that stands for its first member stands for
//! all.

use crate::{ids::EntryId, moment::Moment};

/// Stands for one waiter, and for those directly behind it.
pub(crate) trait PlaceInLine: Clone {
    /// The waiter that many places behind this one.
    fn behind(self, places: u32) -> Self;
}

/// Someone about to wait, for whom nothing is stored yet.
pub(crate) trait Newcomer<W> {
    /// Whether it is the waiter that many places behind the first of a party.
    fn is_behind(&self, first: &W, places: u32) -> bool;

    /// The value that stands for it, if it becomes the first of a party.
    fn into_first(self) -> W;
}

/// When a waiter came, and its lineage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) since: Moment,
    /// The nearest ancestor with an entry on any lease.
    pub(crate) lineage: Option<EntryId>,
}

/// The shared place in line of waiters that came together.
#[derive(Debug, Clone)]
pub(crate) struct Party<W> {
    /// The first member's arrival. The others came at the same moment and have the numbers that follow.
    pub(crate) arrival: Arrival,
    /// Stands for the first member; `None` when all have left.
    first: Option<W>,
    /// The number of members, including those in `departed`. A first member that is popped no longer counts.
    len: u32,
    /// How many members have left from behind the first.
    departed: u32,
}

impl<W: PlaceInLine> Party<W> {
    /// A party of one.
    pub(crate) fn new(arrival: Arrival, first: W) -> Self {
        Self { arrival, first: Some(first), len: 1, departed: 0 }
    }

    /// Adds a newcomer, if it came together with the members.
    pub(crate) fn try_add(&mut self, arrival: Arrival, newcomer: &impl Newcomer<W>) -> bool {
        let is_next = self.end() == arrival.number
            && self.arrival.since == arrival.since
            && self.arrival.lineage == arrival.lineage
            && self.first.as_ref().is_some_and(|first| newcomer.is_behind(first, self.len));
        if is_next {
            self.len = self.len.checked_add(1).expect("a party has fewer than 2^32 places");
        }
        is_next
    }

    /// The number after that of its last member.
    pub(crate) fn end(&self) -> u64 {
        self.arrival.number + u64::from(self.len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes out the first member, which must still be waiting.
    pub(crate) fn pop(&mut self) -> W {
        let first = self.take_value();
        self.advance_past(0);
        first
    }

    /// Takes out one member, which must still be waiting. Its number stays the party's until it is the first.
    pub(crate) fn leave(&mut self, number: u64) -> W {
        let places = self.places_to(number);
        let first = self.take_value();
        self.departed += 1;
        first.behind(places)
    }

    /// The first member's value, for a member that leaves. The last member takes the original.
    fn take_value(&mut self) -> W {
        let is_last = self.len - self.departed == 1;
        let first = if is_last { self.first.take() } else { self.first.clone() };
        first.expect("a party in a lane has a waiter")
    }

    /// Skips the first member, which has left before.
    pub(crate) fn skip_first(&mut self) {
        self.departed -= 1;
        self.advance_past(0);
    }

    /// Cuts the party behind a member that has left. Returns the part in front of that member, none of whose members
    /// has left, unless it is empty.
    pub(crate) fn split_at(&mut self, number: u64) -> Option<Self> {
        let places = self.places_to(number);
        let before = Self { departed: 0, len: places, ..self.clone() };
        self.departed -= 1;
        self.advance_past(places);
        (!before.is_empty()).then_some(before)
    }

    fn advance_past(&mut self, places: u32) {
        let passed = places + 1;
        self.arrival.number += u64::from(passed);
        self.len -= passed;
        self.first = self.first.take().map(|first| first.behind(passed));
    }

    fn places_to(&self, number: u64) -> u32 {
        u32::try_from(number - self.arrival.number).expect("a party has fewer than 2^32 places")
    }

    /// All members with their numbers, including those that have left; empty if all have left.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, W)> {
        let first = self.first.iter();
        first.flat_map(|first| {
            (0..self.len)
                .map(|places| (self.arrival.number + u64::from(places), first.clone().behind(places)))
        })
    }
}
