//! The turns of a session: those that are open, and the latest that have ended (HT-4).

use super::{
    by_number::ByNumber,
    turn::{Phase, ServedTurn},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// How many turns of a session there are at once, and are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnBounds {
    pub(crate) open_max: usize,
    pub(crate) kept_max: usize,
    pub(crate) bytes_max: usize,
}

/// The turns of one session.
#[derive(Debug)]
pub(crate) struct Turns {
    bounds: TurnBounds,
    state: Arc<Mutex<State>>,
}

/// A place for an open turn that is about to be added.
#[derive(Debug)]
pub(crate) struct Room {
    state: Arc<Mutex<State>>,
    is_taken: bool,
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.is_taken {
            self.state.lock().coming -= 1;
        }
    }
}

#[derive(Debug, Default)]
struct State {
    all: ByNumber<Arc<ServedTurn>>,
    /// Places that are kept for turns which are not added yet.
    coming: usize,
    /// Those that have ended, in the order of their ends, each with the bytes of its results.
    ended: VecDeque<(u64, usize)>,
    /// The bytes of all their results.
    bytes: usize,
    /// The highest number of a turn that is kept no longer.
    gone_to: u64,
}

/// A turn that was asked for.
#[derive(Debug)]
pub(crate) enum Find {
    There(Arc<ServedTurn>),
    /// It has ended, and is kept no longer.
    Gone,
    /// There never was one.
    Never,
}

impl Turns {
    pub(super) fn new(bounds: TurnBounds) -> Self {
        Self { bounds, state: Arc::default() }
    }

    /// Room for another open turn, which is kept until that is added or the room is dropped.
    pub(crate) fn room(&self) -> Option<Room> {
        let mut state = self.state.lock();
        if state.open() + state.coming >= self.bounds.open_max {
            return None;
        }
        state.coming += 1;
        Some(Room { state: self.state.clone(), is_taken: false })
    }

    /// How many have not ended.
    pub(crate) fn open(&self) -> usize {
        self.state.lock().open()
    }

    /// Whether any of them has calls that have not ended, or is still being written.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.lock();
        state.all.iter().any(|turn| !matches!(turn.phase(), Phase::Ended | Phase::Broken | Phase::Suspended))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().all.len()
    }

    /// Adds a turn, for which there is room.
    pub(crate) fn add(&self, mut room: Room, turn: Arc<ServedTurn>) {
        let mut state = self.state.lock();
        state.coming -= 1;
        room.is_taken = true;
        state.all.insert(turn.number, turn);
    }

    /// Adds a turn of an earlier life, for which there was room then.
    pub(crate) fn add_past(&self, turn: Arc<ServedTurn>) {
        self.state.lock().all.insert(turn.number, turn);
    }

    /// Notes that a turn has ended, and forgets the oldest that are too many.
    pub(crate) fn ended(&self, turn: &ServedTurn) {
        let Some(ended) = turn.ended() else { return };
        {
            let mut state = self.state.lock();
            if !state.all.contains(turn.number) {
                return;
            }
            state.ended.push_back((turn.number, ended.bytes));
            state.bytes += ended.bytes;
        }
        while let Some(forgotten) = self.forget_oldest() {
            drop(forgotten); // results are dropped outside of the lock
        }
    }

    fn forget_oldest(&self) -> Option<Arc<ServedTurn>> {
        self.state.lock().forget_oldest(&self.bounds)
    }

    pub(crate) fn find(&self, number: u64) -> Find {
        let state = self.state.lock();
        match state.all.get(number) {
            Some(turn) => Find::There(turn.clone()),
            None if number <= state.gone_to && number > 0 => Find::Gone,
            None => Find::Never,
        }
    }

    /// All of them, the newest first.
    pub(crate) fn list(&self) -> Vec<Arc<ServedTurn>> {
        self.state.lock().all.iter().rev().cloned().collect()
    }
}

impl State {
    fn open(&self) -> usize {
        self.all.len() - self.ended.len()
    }

    /// Forgets the turn that ended first, if there are too many.
    fn forget_oldest(&mut self, bounds: &TurnBounds) -> Option<Arc<ServedTurn>> {
        // The latest one is kept, however large: somebody waits for it.
        if self.ended.len() <= 1 || (self.ended.len() <= bounds.kept_max && self.bytes <= bounds.bytes_max) {
            return None;
        }
        let (oldest, bytes) = self.ended.pop_front().expect("there are several");
        let turn = self.all.remove(oldest).expect("what has ended is there");
        self.bytes -= bytes;
        self.gone_to = self.gone_to.max(oldest);
        Some(turn)
    }
}
