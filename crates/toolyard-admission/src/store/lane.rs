//! A lane: interchangeable waiters, first in, first out. If one of them can start, each of them can.

use super::group::{Groups, Sleep};
use super::key::LaneKey;
use super::party::{Arrival, Newcomer, Party, PlaceInLine};
use std::collections::{BTreeSet, VecDeque};

/// The waiters with one key.
#[derive(Debug, Clone)]
pub(crate) struct Lane<W> {
    pub(crate) key: LaneKey,
    pub(crate) groups: Groups,
    /// Where it sleeps: it is not listed at what reaches further than that.
    pub(crate) asleep: Option<Sleep>,
    /// In order of their numbers. The first member of the first party is always still waiting.
    parties: VecDeque<Party<W>>,
    /// How many wait.
    len: usize,
    /// The numbers of waiters that have left but still count in a party. They never outnumber the waiters.
    departed: BTreeSet<u64>,
    /// The head's number under which the lane is listed; `None` while it is not.
    listed: Option<u64>,
}

/// The head of a lane, taken out to start.
#[derive(Debug)]
pub(crate) struct Head<W> {
    pub(crate) arrival: Arrival,
    pub(crate) what: W,
}

impl<W> Lane<W> {
    pub(crate) fn new(key: LaneKey, groups: Groups) -> Self {
        Self {
            key,
            groups,
            asleep: None,
            parties: VecDeque::new(),
            len: 0,
            departed: BTreeSet::new(),
            listed: None,
        }
    }

    /// The arrival of its head.
    pub(crate) fn head(&self) -> Option<Arrival> {
        self.parties.front().map(|first| first.arrival)
    }

    /// The number of the head, under which the lane is to be listed.
    pub(crate) fn turn(&self) -> Option<u64> {
        self.head().map(|head| head.number)
    }

    /// Sets the number it is listed under to that of its head. Returns the previous number and the new one.
    pub(crate) fn list(&mut self) -> (Option<u64>, Option<u64>) {
        let now = self.turn();
        (std::mem::replace(&mut self.listed, now), now)
    }

    /// The number it is listed under.
    pub(crate) fn listed(&self) -> Option<u64> {
        self.listed
    }

    /// Whether it is listed and not empty.
    pub(crate) fn stays_listed(&self) -> bool {
        self.listed.is_some() && self.len > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many places it keeps in memory, including those of waiters that have left.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.parties.len() + self.departed.len()
    }
}

impl<W: PlaceInLine> Lane<W> {
    /// Adds a waiter at the end: to the last party if it came together with that one, else as a new party.
    pub(crate) fn push(&mut self, arrival: Arrival, newcomer: impl Newcomer<W>) {
        self.len += 1;
        if !self.parties.back_mut().is_some_and(|last| last.try_add(arrival, &newcomer)) {
            self.parties.push_back(Party::new(arrival, newcomer.into_first()));
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Head<W>> {
        let party = self.parties.front_mut()?;
        let head = Head { arrival: party.arrival, what: party.pop() };
        self.len -= 1;
        if party.is_empty() || !self.departed.is_empty() {
            self.tidy();
        }
        Some(head)
    }

    /// Takes all waiters out, with their numbers.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, W)> {
        let all = self.waiting().collect();
        (self.len, self.departed) = (0, BTreeSet::new());
        self.parties.clear();
        all
    }

    /// Takes one waiter out, from any position; `None` when it is not here any more.
    pub(crate) fn cancel(&mut self, number: u64) -> Option<W> {
        if self.turn() == Some(number) {
            return self.pop().map(|head| head.what);
        }
        let at = self.party_of(number)?;
        if !self.departed.insert(number) {
            return None;
        }
        self.len -= 1;
        let what = self.parties[at].leave(number);
        self.tidy();
        Some(what)
    }

    /// Forgets waiters that have left: at once those before the first waiter, and those in between before they
    /// outnumber the waiters.
    #[inline(never)]
    fn tidy(&mut self) {
        while let Some(first) = self.parties.front_mut() {
            if first.is_empty() {
                self.parties.pop_front();
            } else if self.departed.first() == Some(&first.arrival.number) {
                self.departed.pop_first();
                first.skip_first();
            } else {
                break;
            }
        }
        if self.departed.len() > self.len {
            self.part();
        }
    }

    /// Splits parties where members have left from their middle.
    fn part(&mut self) {
        let mut departed = std::mem::take(&mut self.departed).into_iter().peekable();
        for mut party in std::mem::take(&mut self.parties) {
            while let Some(left) = departed.next_if(|left| *left < party.end()) {
                self.parties.extend(party.split_at(left));
            }
            self.parties.extend((!party.is_empty()).then_some(party));
        }
    }

    /// The waiters up to and including that number.
    pub(crate) fn until(&self, number: u64) -> impl Iterator<Item = W> {
        self.waiting().take_while(move |(at, _)| *at <= number).map(|(_, what)| what)
    }

    /// Whether this waiter is still in the lane.
    pub(crate) fn holds(&self, number: u64) -> bool {
        self.party_of(number).is_some() && !self.departed.contains(&number)
    }

    /// The waiters, with their numbers.
    fn waiting(&self) -> impl Iterator<Item = (u64, W)> {
        let all = self.parties.iter().flat_map(Party::all);
        all.filter(|(number, _)| !self.departed.contains(number))
    }

    /// The index of the party that this number belongs to, whether or not it has left.
    fn party_of(&self, number: u64) -> Option<usize> {
        let at = self.parties.partition_point(|party| party.end() <= number);
        self.parties.get(at).filter(|party| party.arrival.number <= number).map(|_| at)
    }
}
