//! Finds secrets in a text, in whatever spelling, in time linear in the text.
//!
//! The text is read unit by unit, and what the units stand for drives one automaton for all secrets. Where a secret
//! stands right behind a character that makes an escape of its first letters, such as `100%` before `ab…`, those letters
//! are read once more as themselves: the automaton then has a second state for a while, a *lane*. It ends as soon as what
//! it has read of a secret started behind the escape, where the main state has read it too.

use super::spelling::{self, Reading, UNIT_BYTES_MAX};
use aho_corasick::{
    Anchored,
    automaton::{Automaton, StateID},
    nfa::contiguous::NFA,
};
use std::ops::Range;

/// How many lanes there may be at once. More at once would have to be parts of secrets that look like escapes themselves.
const LANES_MAX: usize = 8;

/// Secrets as one reading has them.
pub(super) struct Finder {
    reading: Reading,
    nfa: NFA,
    start: StateID,
    /// How much of a secret each state has read, by its id.
    depths: Vec<u32>,
}

/// A second state of the automaton.
struct Lane {
    state: StateID,
    /// Where its own letters end in the text.
    end: usize,
    /// How many bytes had been read by then.
    joined: usize,
}

/// A text as it was read so far.
struct Scan<'f> {
    finder: &'f Finder,
    state: StateID,
    /// Where the unit of each byte that was read starts.
    starts: Vec<usize>,
    lanes: Vec<Lane>,
    steps: usize,
}

impl Finder {
    /// A finder of these; `None` if there are none, or too many.
    pub(super) fn of(reading: Reading, secrets: &[Vec<u8>]) -> Option<Self> {
        let nfa = NFA::new(secrets).ok().filter(|_| !secrets.is_empty())?;
        let start = nfa.start_state(Anchored::No).ok()?;
        let mut depths = Vec::new();
        for secret in secrets {
            let mut state = nfa.start_state(Anchored::Yes).ok()?;
            for (depth, byte) in (1..).zip(secret) {
                state = nfa.next_state(Anchored::Yes, state, *byte);
                let at = state.as_usize();
                if at >= depths.len() {
                    depths.resize(at + 1, 0);
                }
                depths[at] = depth;
            }
        }
        Some(Self { reading, nfa, start, depths })
    }

    /// Passes on where the secrets are. Returns how many steps that took.
    pub(super) fn find(&self, text: &str, found: &mut dyn FnMut(Range<usize>)) -> usize {
        let mut scan = Scan::of(self);
        scan.read(text.as_bytes(), text.len(), found);
        scan.steps
    }

    /// Where the longest end of the text starts that may be the start of a secret.
    pub(super) fn partial_match_start(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let until = escape_at_end(bytes).unwrap_or(bytes.len());
        let mut scan = Scan::of(self);
        scan.read(bytes, until, &mut |_| {});
        scan.partial_match_start().unwrap_or(until)
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.get(state.as_usize()).map_or(0, |depth| *depth as usize)
    }

    /// How long the longest secret is that ends in this state.
    fn ended(&self, state: StateID) -> Option<usize> {
        if !self.nfa.is_match(state) {
            return None;
        }
        let matches = (0..self.nfa.match_len(state)).map(|at| self.nfa.match_pattern(state, at));
        matches.map(|pattern| self.nfa.pattern_len(pattern)).max()
    }
}

impl<'f> Scan<'f> {
    fn of(finder: &'f Finder) -> Self {
        Self { finder, state: finder.start, starts: Vec::new(), lanes: Vec::new(), steps: 0 }
    }

    /// Reads the units that start before `until`.
    fn read(&mut self, text: &[u8], until: usize, found: &mut dyn FnMut(Range<usize>)) {
        let (mut at, mut run) = (0, None);
        while at < until {
            let unit = spelling::unit(text, at);
            // An odd number of backslashes before a character belongs to it.
            let start = run.take().unwrap_or(at);
            let read = self.starts.len();
            for byte in unit.bytes(self.finder.reading) {
                self.step(byte, start, unit.end, found);
            }
            if read == self.starts.len() && unit.backslashes % 2 == 1 {
                run = Some(start);
            }
            if let Some(inside) = unit.inside {
                self.enter(text, inside..unit.end, found);
            }
            at = unit.end;
        }
    }

    fn step(&mut self, byte: u8, start: usize, end: usize, found: &mut dyn FnMut(Range<usize>)) {
        let finder = self.finder;
        self.starts.push(start);
        self.steps += 1 + self.lanes.len();
        self.state = finder.nfa.next_state(Anchored::No, self.state, byte);
        if let Some(bytes) = finder.ended(self.state) {
            found(self.starts[self.starts.len() - bytes]..end);
        }
        let read = self.starts.len();
        self.lanes.retain_mut(|lane| {
            lane.state = finder.nfa.next_state(Anchored::No, lane.state, byte);
            let shared = read - lane.joined;
            if let Some(own) = finder.ended(lane.state).and_then(|bytes| bytes.checked_sub(shared)) {
                found(lane.end.saturating_sub(own)..end);
            }
            finder.depth(lane.state) > shared
        });
    }

    /// Reads what is inside an escape as itself, in a lane.
    fn enter(&mut self, text: &[u8], inside: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
        let finder = self.finder;
        let mut state = finder.start;
        for at in inside.clone() {
            let Some(byte) = finder.reading.of(text[at]) else { continue };
            self.steps += 1;
            state = finder.nfa.next_state(Anchored::No, state, byte);
            if let Some(bytes) = finder.ended(state) {
                found(at + 1 - bytes..at + 1);
            }
        }
        if finder.depth(state) > 0 && self.lanes.len() < LANES_MAX {
            self.lanes.push(Lane { state, end: inside.end, joined: self.starts.len() });
        }
    }

    fn partial_match_start(&self) -> Option<usize> {
        let read = self.starts.len();
        let main = self.finder.depth(self.state);
        let main = (main > 0).then(|| self.starts[read - main]);
        let lanes = self.lanes.iter().map(|lane| {
            let own = self.finder.depth(lane.state).saturating_sub(read - lane.joined);
            lane.end.saturating_sub(own)
        });
        lanes.chain(main).min()
    }
}

/// Where an escape starts that may go on behind the text.
fn escape_at_end(text: &[u8]) -> Option<usize> {
    let from = text.len().saturating_sub(UNIT_BYTES_MAX);
    let mut at = (from..text.len()).find(|at| spelling::starts_escape(text[*at]))?;
    while at > 0 && text[at - 1] == b'\\' {
        at -= 1;
    }
    Some(at)
}
