//! The bar of a row: what its calls did in each cell of the scale.

use super::{
    rows::Row,
    scale::Scale,
    timeline::{Attempt, Span},
};
use crate::display::{Brief, width};

/// A wait for people that is cut out of the scale.
pub(super) const CUT: char = '┆';

/// Draws a row of calls: spaces before their run, dots while they wait for a permit, blocks for attempts, shaded if
/// another attempt was to follow, and dashes for the backoff. A mark is the end of a call that never started.
pub(super) fn bar(row: &Row<'_>, scale: &Scale, cells: usize) -> String {
    let mut drawn = vec![' '; cells];
    for span in row.spans {
        for (at, cell) in drawn.iter_mut().enumerate() {
            let mark = of_call(span, scale, at);
            if strength(mark) > strength(*cell) {
                *cell = mark;
            }
        }
    }
    mark_cuts(&mut drawn, scale);
    drawn.into_iter().collect()
}

/// The scale above the bars: from 0 to how much time is on it, and what is cut out of it where there is room.
pub(super) fn head(scale: &Scale, cells: usize) -> String {
    let mut drawn = vec![' '; cells];
    mark_cuts(&mut drawn, scale);
    write(&mut drawn, 0, "0");
    let end = Brief(scale.shown()).to_string();
    write(&mut drawn, cells.saturating_sub(width(&end)), &end);
    for cut in scale.cuts() {
        write(&mut drawn, cut.cell + 1, &Brief(cut.time).to_string());
    }
    drawn.into_iter().collect()
}

/// Writes a text if its place is free, with a space behind it unless that is the end.
fn write(drawn: &mut [char], at: usize, text: &str) {
    let end = at + text.chars().count();
    let is_free = drawn.get(at..end).is_some_and(|cells| cells.iter().all(|cell| *cell == ' '));
    let is_apart = drawn.get(end).is_none_or(|cell| matches!(*cell, ' ' | CUT));
    let follows = at.checked_sub(1).and_then(|before| drawn.get(before));
    let is_apart = is_apart && follows.is_none_or(|cell| matches!(*cell, ' ' | CUT));
    if is_free && is_apart {
        drawn[at..end].iter_mut().zip(text.chars()).for_each(|(cell, c)| *cell = c);
    }
}

/// A wait in which no call ran.
fn mark_cuts(drawn: &mut [char], scale: &Scale) {
    for cut in scale.cuts() {
        if let Some(cell @ (' ' | '·')) = drawn.get_mut(cut.cell) {
            *cell = CUT;
        }
    }
}

/// What says more is drawn over what says less.
fn strength(mark: char) -> u8 {
    match mark {
        ' ' => 0,
        '·' => 1,
        '╌' => 2,
        '▒' => 3,
        _ => 4,
    }
}

fn of_call(span: &Span, scale: &Scale, at: usize) -> char {
    let Some(started) = span.started.map(|at| scale.begin(at)) else {
        // It never started: it was refused, or it shares the result of another call.
        let mark = if span.error.is_some() { '×' } else { '○' };
        return if at == scale.begin(span.ended) { mark } else { ' ' };
    };
    let (ready, ended) = (scale.begin(span.ready), scale.end(span.ended).max(started));
    match at {
        _ if (started..=ended).contains(&at) => of_attempt(span, scale, at),
        _ if (ready..started).contains(&at) => '·',
        _ => ' ',
    }
}

/// What the call did in this cell, after its first permits.
fn of_attempt(span: &Span, scale: &Scale, at: usize) -> char {
    let covers = |attempt: &&Attempt| {
        let from = scale.begin(attempt.started);
        (from..=scale.end(attempt.ended).max(from)).contains(&at)
    };
    let is_over = |attempt: &Attempt| attempt.retry.is_some() && scale.end(attempt.ended) < at;
    match span.attempts.iter().rev().find(covers) {
        Some(Attempt { retry: Some(_), .. }) => '▒',
        None if span.attempts.iter().any(is_over) => '╌',
        // The time between the permits and the first attempt is not backoff.
        _ => '█',
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{rows::tests::span, timeline::Timeline},
        *,
    };
    use std::time::Duration;

    fn drawn(timeline: &Timeline, at: usize) -> String {
        let row = Row { spans: &timeline.spans[at..=at], waits: Vec::new() };
        bar(&row, &Scale::new(timeline, 32), 32)
    }

    fn of(spans: Vec<Span>) -> Timeline {
        Timeline { began: None, spans }
    }

    #[test]
    fn a_wait_is_drawn_between_attempts_alone() {
        let at = Duration::from_millis;
        let attempt = Attempt { started: at(20), ended: at(32), retry: None };
        let span = Span { ready: at(5), attempts: vec![attempt], ..span("a", 0, 10, 32) };
        assert_eq!(drawn(&of(vec![span.clone()]), 0), format!("     ·····{}", "█".repeat(22)));
        let again =
            Attempt { started: at(12), ended: at(15), retry: Some((toolyard::ErrorKind::Transient, at(5))) };
        let span = Span { attempts: vec![again, attempt], ..span };
        assert_eq!(drawn(&of(vec![span]), 0), format!("     ·····██▒▒▒▒╌╌╌╌{}", "█".repeat(12)));
    }

    /// KT-13: a wait for a person is marked in every row, and its length stands above it.
    #[test]
    fn a_cut_is_marked_with_its_length() {
        let at = Duration::from_millis;
        let mut write = span("w", 1, 5010, 5021);
        write.asked = Some((at(1), at(5010)));
        let timeline = of(vec![span("a", 0, 0, 20), write]);
        assert_eq!(drawn(&timeline, 0), format!("{}┆{}", "█".repeat(20), " ".repeat(11)));
        assert_eq!(drawn(&timeline, 1), format!("{}┆{}", " ".repeat(20), "█".repeat(11)));
        // The length has no room beside the end of the scale.
        assert_eq!(head(&Scale::new(&timeline, 32), 32), format!("0{}┆    31.0 ms", " ".repeat(19)));
        let wide = head(&Scale::new(&timeline, 64), 64);
        assert!(wide.contains("┆4.99 s") && wide.ends_with("31.0 ms"), "{wide}");
    }
}
