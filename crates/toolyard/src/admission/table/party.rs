//! Those who came together: one right behind the other, and alike but for that. The calls of a run do.
//!
//! ```text
//!   lane   12 13  ×  × 16 17 18 │ 31 │ 40 41 42      three parties; of the first, two have left from its middle
//! ```
//!
//! A party takes the room of one, be there ever so many in it: what stands for its first stands for all.

use super::{EntryId, Moment};

/// Stands for one who waits, and for those who came right behind him.
pub(in crate::admission) trait Waits: Clone {
    /// Who stands so many places behind this one.
    fn behind(self, places: u32) -> Self;
}

/// One who comes to wait, before anything is kept for him.
pub(in crate::admission) trait Newcomer<W> {
    /// Whether he is who stands so many places behind the first of a party.
    fn is_behind(&self, first: &W, places: u32) -> bool;

    /// What stands for him, where he is the first of a party.
    fn into_first(self) -> W;
}

/// When somebody came, and from where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    pub(super) number: u64,
    pub(super) since: Moment,
    /// The nearest ancestor on any lease.
    pub(super) lineage: Option<EntryId>,
}

/// The place in line of those who came together.
#[derive(Debug, Clone)]
pub(super) struct Party<W> {
    /// When the first came. The others came at the same moment and have the numbers that follow.
    pub(super) came: Came,
    /// `None`: all have left.
    first: Option<W>,
    /// How many came. Who goes as the first is not among them any more.
    len: u32,
    /// How many of them have left.
    gone: u32,
}

impl<W: Waits> Party<W> {
    /// A party of one.
    pub(super) fn new(came: Came, first: W) -> Self {
        Self { came, first: Some(first), len: 1, gone: 0 }
    }

    /// Takes a newcomer in, if he came together with those who are here.
    pub(super) fn takes_in(&mut self, came: Came, newcomer: &impl Newcomer<W>) -> bool {
        let is_next = self.end() == came.number
            && self.came.since == came.since
            && self.came.lineage == came.lineage
            && self.first.as_ref().is_some_and(|first| newcomer.is_behind(first, self.len));
        if is_next {
            self.len = self.len.checked_add(1).expect("a party has fewer than 2^32 places");
        }
        is_next
    }

    /// The number behind that of its last.
    pub(super) fn end(&self) -> u64 {
        self.came.number + u64::from(self.len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first goes, who waits still.
    pub(super) fn pop(&mut self) -> W {
        let first = self.one_less();
        self.go_on_behind(0);
        first
    }

    /// One of them leaves, who waits still. His number is the party's until it has come to the first.
    pub(super) fn leave(&mut self, number: u64) -> W {
        let places = self.places_to(number);
        let first = self.one_less();
        self.gone += 1;
        first.behind(places)
    }

    /// What stands for the first, for one who waits no longer: the last of them takes it along.
    fn one_less(&mut self) -> W {
        let is_last = self.len - self.gone == 1;
        let first = if is_last { self.first.take() } else { self.first.clone() };
        first.expect("one of a party waits still")
    }

    /// The first has left before.
    pub(super) fn pass_first(&mut self) {
        self.gone -= 1;
        self.go_on_behind(0);
    }

    /// Goes on behind one of them who has left; gives those before him, if there are any. None of them has left.
    pub(super) fn part_at(&mut self, number: u64) -> Option<Self> {
        let places = self.places_to(number);
        let before = Self { gone: 0, len: places, ..self.clone() };
        self.gone -= 1;
        self.go_on_behind(places);
        (!before.is_empty()).then_some(before)
    }

    fn go_on_behind(&mut self, places: u32) {
        let passed = places + 1;
        self.came.number += u64::from(passed);
        self.len -= passed;
        self.first = self.first.take().map(|first| first.behind(passed));
    }

    fn places_to(&self, number: u64) -> u32 {
        u32::try_from(number - self.came.number).expect("a party has fewer than 2^32 places")
    }

    /// All with their numbers, those who have left included; nobody where all have.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, W)> {
        let first = self.first.iter();
        first.flat_map(|first| {
            (0..self.len).map(|places| (self.came.number + u64::from(places), first.clone().behind(places)))
        })
    }
}
