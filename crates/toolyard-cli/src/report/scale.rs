//! From times to the cells of a bar. Waits for people are cut out: each is one cell, however long it was (KT-13).
//!
//! ```text
//!   time    0 ──────── 12 ms            12.4 s ─── 12.41 s       a question was open, and no call ran
//!   cells   │ piece 0      │ cut: a cell │ piece 1      │
//! ```

use super::timeline::{ANSWER_MIN, Span, Timeline};
use std::time::Duration;

/// At most one cell of so many is a cut; shorter waits than those stay on the scale.
const CELLS_PER_CUT: usize = 4;

/// A scale of some cells.
#[derive(Debug)]
pub(super) struct Scale {
    /// In order, with a cut between two of them. There is at least one.
    pieces: Vec<Piece>,
    /// How much time is on the scale.
    shown: Duration,
}

/// A period that is on the scale.
#[derive(Debug)]
struct Piece {
    from: Duration,
    to: Duration,
    first: usize,
    cells: usize,
}

/// A wait for people that is not on the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) cell: usize,
    pub(super) time: Duration,
}

impl Scale {
    /// The scale of a timeline in so many cells.
    pub(super) fn new(timeline: &Timeline, cells: usize) -> Self {
        let cuts = longest(waits_for_people(timeline), cells / CELLS_PER_CUT);
        let mut pieces = Vec::new();
        let mut from = Duration::ZERO;
        for (begin, end) in &cuts {
            pieces.push(Piece { from, to: *begin, first: 0, cells: 0 });
            from = *end;
        }
        pieces.push(Piece { from, to: timeline.wall().max(from), first: 0, cells: 0 });
        let shown = pieces.iter().map(Piece::time).sum();
        share(&mut pieces, cells.saturating_sub(cuts.len()), shown);
        Self { pieces, shown }
    }

    /// How much time is on the scale.
    pub(super) fn shown(&self) -> Duration {
        self.shown
    }

    /// What is not on the scale.
    pub(super) fn cuts(&self) -> impl Iterator<Item = Cut> {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        pairs.map(|(piece, next)| Cut { cell: piece.end(), time: next.from.saturating_sub(piece.to) })
    }

    /// The cell in which something begins.
    pub(super) fn begin(&self, at: Duration) -> usize {
        let piece = self.pieces.iter().rev().find(|piece| piece.from <= at).unwrap_or(&self.pieces[0]);
        let is_last = piece.end() == self.last_end();
        if at > piece.to && !is_last { piece.end() } else { piece.cell(at) }
    }

    /// The cell in which something ends.
    pub(super) fn end(&self, at: Duration) -> usize {
        match self.pieces.iter().find(|piece| at <= piece.to) {
            Some(piece) if at < piece.from => piece.first.saturating_sub(1),
            Some(piece) => piece.cell(at),
            None => self.last_end().saturating_sub(1),
        }
    }

    fn last_end(&self) -> usize {
        self.pieces.last().map_or(0, Piece::end)
    }
}

impl Piece {
    fn time(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    fn end(&self) -> usize {
        self.first + self.cells
    }

    fn cell(&self, at: Duration) -> usize {
        let part =
            at.saturating_sub(self.from).as_secs_f64() / self.time().as_secs_f64().max(f64::MIN_POSITIVE);
        // The part is 0 or more, and a cast of what is too large gives the largest number.
        self.first + ((part * self.cells as f64) as usize).min(self.cells.saturating_sub(1))
    }
}

/// Gives each piece its share of the cells, and at least one; a piece without time before the first cut has none.
fn share(pieces: &mut [Piece], cells: usize, shown: Duration) {
    for piece in pieces.iter_mut() {
        let part = piece.time().as_secs_f64() / shown.as_secs_f64().max(f64::MIN_POSITIVE);
        let least = usize::from(piece.to > Duration::ZERO || shown.is_zero());
        piece.cells = ((part * cells as f64).round() as usize).clamp(least, cells.max(least));
    }
    let given = |pieces: &[Piece]| pieces.iter().map(|piece| piece.cells).sum::<usize>();
    while given(pieces) != cells {
        let is_less = given(pieces) < cells;
        let Some(largest) = pieces.iter_mut().max_by_key(|piece| piece.cells) else { return };
        match (is_less, largest.cells) {
            (true, _) => largest.cells += 1,
            (false, 0) => return,
            (false, _) => largest.cells -= 1,
        }
    }
    let mut first = 0;
    for piece in pieces {
        piece.first = first;
        first = piece.end() + 1;
    }
}

/// When a question was open and no call was between its permits and its end; what is shorter stays on the scale.
fn waits_for_people(timeline: &Timeline) -> Vec<(Duration, Duration)> {
    let ran = |span: &Span| span.started.map(|started| (started, span.ended));
    let asked = union(timeline.spans.iter().filter_map(|span| span.asked).collect());
    let mut ran = union(timeline.spans.iter().filter_map(ran).collect()).into_iter().peekable();
    let mut waits = Vec::new();
    for (mut from, to) in asked {
        while ran.next_if(|(_, ended)| *ended <= from).is_some() {}
        while let Some((started, ended)) = ran.peek().copied().filter(|(started, _)| *started < to) {
            waits.push((from, started.max(from)));
            from = ended.min(to);
            if ended >= to {
                break;
            }
            ran.next();
        }
        waits.push((from, to));
    }
    waits.retain(|(from, to)| to.saturating_sub(*from) >= ANSWER_MIN);
    waits
}

/// Periods without their overlaps, in order.
fn union(mut periods: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    periods.sort_unstable();
    let mut joined = Vec::<(Duration, Duration)>::new();
    for (from, to) in periods {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// The longest of them, in order.
fn longest(mut periods: Vec<(Duration, Duration)>, most: usize) -> Vec<(Duration, Duration)> {
    periods.sort_by_key(|(from, to)| std::cmp::Reverse(to.saturating_sub(*from)));
    periods.truncate(most);
    periods.sort_unstable();
    periods
}

#[cfg(test)]
mod tests {
    use super::{super::rows::tests::span, *};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn timeline(spans: Vec<Span>) -> Timeline {
        Timeline { began: None, spans }
    }

    /// KT-13
    #[test]
    fn without_questions_time_is_cells() {
        let scale = Scale::new(&timeline(vec![span("a", 0, 0, 32)]), 32);
        assert_eq!((scale.shown(), scale.cuts().count()), (ms(32), 0));
        assert_eq!([0, 10, 31, 32].map(|at| scale.begin(ms(at))), [0, 10, 31, 31]);
        assert_eq!([0, 10, 31, 32].map(|at| scale.end(ms(at))), [0, 10, 31, 31]);
    }

    /// KT-13: a question is one cell, between what ended before and what began after.
    #[test]
    fn a_wait_for_a_person_is_one_cell() {
        let mut write = span("w", 1, 5010, 5020);
        write.asked = Some((ms(2), ms(5010)));
        let scale = Scale::new(&timeline(vec![span("a", 0, 0, 10), write]), 21);
        let cuts: Vec<Cut> = scale.cuts().collect();
        assert_eq!((scale.shown(), cuts.as_slice()), (ms(20), &[Cut { cell: 10, time: ms(5000) }][..]));
        assert_eq!((scale.end(ms(10)), scale.begin(ms(5010)), scale.end(ms(5020))), (9, 11, 20));
        assert_eq!((scale.begin(ms(3000)), scale.end(ms(3000))), (10, 10));
    }

    /// KT-13: while a call runs, a question cuts nothing out; a short one never does.
    #[test]
    fn time_in_which_calls_ran_stays() {
        let mut write = span("w", 1, 5000, 5020);
        write.asked = Some((ms(0), ms(5000)));
        let cuts = |spans| Scale::new(&timeline(spans), 32).cuts().map(|cut| cut.time).collect::<Vec<_>>();
        assert_eq!(cuts(vec![span("a", 0, 0, 5000), write.clone()]), []);
        let two = vec![span("a", 0, 1000, 2000), span("b", 0, 2500, 2550), write.clone()];
        assert_eq!(cuts(two), [ms(1000), ms(500), ms(2450)]);
        write.asked = Some((ms(0), ms(99)));
        assert_eq!(cuts(vec![write]), []);
    }

    /// KT-13: of more waits than there is room for, the longest are cut out.
    #[test]
    fn many_waits_leave_room_for_the_calls() {
        let asked = |at: u64| {
            let mut span = span("w", 0, at * 10_000 + 5000 + at, at * 10_000 + 6000 + at);
            span.asked = Some((ms(at * 10_000), ms(at * 10_000 + 5000 + at)));
            span
        };
        let scale = Scale::new(&timeline((0..50).map(asked).collect()), 16);
        let cuts: Vec<Duration> = scale.cuts().map(|cut| cut.time).collect();
        assert_eq!(cuts, [46, 47, 48, 49].map(|at| ms(5000 + at)));
        assert_eq!(scale.end(ms(u64::from(u32::MAX))), 15);
    }
}
