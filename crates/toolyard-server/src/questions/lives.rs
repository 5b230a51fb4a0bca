//! The order of questions (HT-12).

use std::{cmp::Ordering, collections::HashMap};
use toolyard::{RequestId, event::Epoch};

/// The lives of the engine, by when they were. What was asked in one of them is ordered by its ids; the names of lives are in
/// no order.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// The earlier ones, by their names, from 0.
    earlier: HashMap<u64, usize>,
}

/// When a life was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    /// Earlier than all of which is known when they were.
    Unknown,
    Earlier(usize),
    This,
}

impl Lives {
    /// These were before this one, the oldest first.
    pub(super) fn new(earlier: &[Epoch]) -> Self {
        Self { earlier: earlier.iter().enumerate().map(|(at, epoch)| (epoch.number(), at)).collect() }
    }

    fn life(&self, id: RequestId, this_life: Epoch) -> Life {
        match self.earlier.get(&id.epoch()) {
            _ if id.epoch() == this_life.number() => Life::This,
            Some(at) => Life::Earlier(*at),
            None => Life::Unknown,
        }
    }

    /// Which of two questions was asked first.
    pub(super) fn compare(&self, one: RequestId, other: RequestId, this_life: Epoch) -> Ordering {
        let place = |id| (self.life(id, this_life), id);
        place(one).cmp(&place(other))
    }
}
