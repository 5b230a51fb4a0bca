//! Puts the results of episodes that run side by side in the order of the input.
//!
//! ```text
//!   episode 4, the first unfinished one ─► standard output, turn by turn │ a file: whole, when it has ended
//!   episode 5 ─► held ┐
//!   episode 7 ─► held ┴─► written when all before them have ended
//! ```
//!
//! What is held is bounded twice: no episode starts far ahead of the first unfinished one, and while too many bytes are
//! held only the first unfinished episode begins another turn (KT-9).

use super::results::{self, Results};
use crate::error::Error;
use std::{collections::BTreeMap, mem};
use toolyard_wire::TurnResults;

/// How far ahead of the first unfinished episode others start, in multiples of the number of jobs.
const AHEAD: u64 = 4;

/// How many bytes of results are held, beyond the turns that were running when there were that many.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The place of an episode among those that run, from 0.
pub(super) type Place = u64;

/// What an episode may do about its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    first: Place,
    is_full: bool,
}

impl Room {
    /// Whether the episode at this place may begin another turn.
    pub(super) fn is_for(&self, place: Place) -> bool {
        !self.is_full || place == self.first
    }
}

/// The results of episodes, on their way to where they are written.
#[derive(Debug)]
pub(super) struct Order {
    to: Results,
    /// The first episode that has not ended.
    first: Place,
    held: BTreeMap<Place, Held>,
    held_bytes: usize,
    /// Whether an episode was left out. Nothing after it is written: what is written is the beginning of the input.
    is_cut: bool,
    /// The number of episodes that are written.
    written: u64,
}

/// The results of an episode that cannot be written yet.
#[derive(Debug, Default)]
struct Held {
    lines: Vec<u8>,
    end: Option<End>,
}

/// How an episode ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Every turn has its results.
    Whole,
    /// An interrupt reached it: it is left out, and runs again when the run goes on.
    LeftOut,
}

impl Order {
    /// Writes results to this place.
    pub(super) fn new(to: Results) -> Self {
        Self { to, first: 0, held: BTreeMap::new(), held_bytes: 0, is_cut: false, written: 0 }
    }

    /// Whether the episode at this place may start, with so many jobs.
    pub(super) fn may_start(&self, place: Place, jobs: usize) -> bool {
        let ahead = AHEAD.saturating_mul(jobs as u64);
        place.saturating_sub(self.first) <= ahead && self.room().is_for(place)
    }

    /// What the episodes that run may do.
    pub(super) fn room(&self) -> Room {
        Room { first: self.first, is_full: self.held_bytes > HELD_BYTES_MAX }
    }

    /// Whether the turns of the first unfinished episode are written as they end.
    pub(super) fn is_by_turn(&self) -> bool {
        self.to.is_by_turn()
    }

    /// The number of episodes that are written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Takes the results of a turn.
    pub(super) fn line(&mut self, place: Place, turn: &TurnResults<'_>) -> Result<(), Error> {
        if self.is_cut {
            return Ok(());
        }
        if place == self.first && self.to.is_by_turn() {
            return results::print_line(turn);
        }
        let lines = &mut self.held.entry(place).or_default().lines;
        let before = lines.len();
        results::write_line(lines, turn).map_err(|error| self.to.failed(error))?;
        self.held_bytes += lines.len() - before;
        Ok(())
    }

    /// Takes the end of an episode, and writes what has waited for it.
    pub(super) fn end(&mut self, place: Place, end: End) -> Result<(), Error> {
        self.held.entry(place).or_default().end = Some(end);
        while let Some(held) = self.held.get_mut(&self.first) {
            let end = held.end;
            if end.is_none() && !self.to.is_by_turn() {
                break;
            }
            let lines = mem::take(&mut held.lines);
            self.held_bytes -= lines.len();
            self.is_cut |= end == Some(End::LeftOut);
            if !self.is_cut {
                self.to.write(&lines)?;
            }
            if end.is_none() {
                break; // it is the first now, and its next turns are written as they end
            }
            self.held.remove(&self.first);
            self.written += u64::from(!self.is_cut);
            self.first += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
