//! Which calls have a row of their own, and which share one because theirs would look alike (KT-13).

use super::{
    scale::Scale,
    timeline::{Span, Timeline},
    waits::Wait,
};

/// How many calls that look alike share a row; fewer have their own, since their ids are worth it.
const FOLD_MIN: usize = 3;

/// Rows are compared on a scale of so many cells, whatever they are drawn on, so that what is folded does not depend on
/// the terminal.
const CELLS: usize = 32;

/// Calls that look alike begin and end at most this many cells from the first of them.
const CELLS_OFF_MAX: usize = 1;

/// One row: a call, or several that follow each other.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The calls; at least one.
    pub(super) spans: &'a [Span],
    /// What they waited for, and how long at most.
    pub(super) waits: Vec<Wait>,
}

impl<'a> Row<'a> {
    pub(super) fn first(&self) -> &'a Span {
        &self.spans[0]
    }

    pub(super) fn is_folded(&self) -> bool {
        self.spans.len() > 1
    }
}

/// The rows of a timeline, in order.
pub(super) fn rows<'a>(timeline: &'a Timeline, waits: &[Vec<Wait>]) -> Vec<Row<'a>> {
    let scale = Scale::new(timeline, CELLS);
    let mut rows = Vec::new();
    let mut from = 0;
    while from < timeline.spans.len() {
        let first = Look::of(&timeline.spans[from], &waits[from], &scale);
        let others = timeline.spans[from..].iter().zip(&waits[from..]);
        let alike = others.take_while(|(span, waits)| first.is_like(&Look::of(span, waits, &scale))).count();
        let calls = if alike >= FOLD_MIN { alike } else { 1 };
        let range = from..from + calls;
        rows.push(Row { spans: &timeline.spans[range.clone()], waits: merged(&waits[range]) });
        from += calls;
    }
    rows
}

/// What a row shows of a call.
struct Look<'a> {
    span: &'a Span,
    waits: &'a [Wait],
    /// When it was queued, started and ended.
    cells: [Option<usize>; 3],
}

impl<'a> Look<'a> {
    fn of(span: &'a Span, waits: &'a [Wait], scale: &Scale) -> Self {
        let started = span.started.map(|at| scale.begin(at));
        Self { span, waits, cells: [Some(scale.begin(span.ready)), started, Some(scale.end(span.ended))] }
    }

    fn is_like(&self, other: &Self) -> bool {
        let (one, two) = (self.span, other.span);
        let same_end = match (one.error, two.error) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                (one.kind, one.last, one.retry_stopped) == (two.kind, two.last, two.retry_stopped)
            }
            _ => false,
        };
        let near = |(one, two): (&Option<usize>, &Option<usize>)| match (one, two) {
            (Some(one), Some(two)) => one.abs_diff(*two) <= CELLS_OFF_MAX,
            (one, two) => one == two,
        };
        same_end
            && (&one.tool, one.routing, one.run, one.dedupe, one.attempts.len(), one.asked.is_some())
                == (&two.tool, two.routing, two.run, two.dedupe, two.attempts.len(), two.asked.is_some())
            && self.waits.iter().map(|wait| &wait.cause).eq(other.waits.iter().map(|wait| &wait.cause))
            && self.cells.iter().zip(&other.cells).all(near)
    }
}

/// The longest wait for each cause; all have the same causes.
fn merged(waits: &[Vec<Wait>]) -> Vec<Wait> {
    let mut merged = waits[0].clone();
    for waits in waits {
        for (one, other) in merged.iter_mut().zip(waits) {
            one.time = one.time.max(other.time);
        }
    }
    merged
}

#[cfg(test)]
pub(super) mod tests {
    use super::{super::timeline::SpanError, *};
    use std::time::Duration;
    use toolyard::{Dedupe, ErrorKind, Routing};

    /// A call of `tool` in this run, from and to these milliseconds.
    pub(in super::super) fn span(tool: &str, run: u32, started: u64, ended: u64) -> Span {
        let ms = Duration::from_millis;
        Span {
            call_id: format!("{tool}_{started}").into(),
            tool: tool.into(),
            routing: Routing::Read,
            run,
            arrived: Duration::ZERO,
            ready: ms(started),
            asked: None,
            started: Some(ms(started)),
            ended: ms(ended),
            attempts: Vec::new(),
            error: None,
            dedupe: Dedupe::Fresh,
        }
    }

    fn sizes(spans: Vec<Span>) -> Vec<usize> {
        let timeline = Timeline { began: None, spans };
        let waits = vec![Vec::new(); timeline.spans.len()];
        rows(&timeline, &waits).iter().map(|row| row.spans.len()).collect()
    }

    /// KT-13
    #[test]
    fn calls_that_look_alike_share_a_row() {
        let alike = |count: usize| vec![span("a", 0, 0, 320); count];
        assert_eq!(sizes(alike(20)), [20]);
        assert_eq!(sizes(alike(3)), [3]);
        assert_eq!(sizes(alike(2)), [1, 1]);
        assert_eq!(sizes(vec![]), [] as [usize; 0]);
        let mut mixed = alike(6);
        mixed[3].tool = "b".into();
        assert_eq!(sizes(mixed), [3, 1, 1, 1]);
        let mut failed = alike(6);
        let error =
            SpanError { kind: ErrorKind::Transient, last: None, retry_after: None, retry_stopped: None };
        failed[3..].iter_mut().for_each(|span| span.error = Some(error));
        assert_eq!(sizes(failed), [3, 3]);
    }

    /// KT-13: rows that drift are compared with the first, so that a fold does not grow without end.
    #[test]
    fn calls_at_other_times_have_rows_of_their_own() {
        let steps = |by: u64| (0..9).map(|at| span("a", 0, at * by, 320 + at * by)).collect();
        assert_eq!(sizes(steps(0)), [9]);
        assert_eq!(sizes(steps(40)), [1; 9]);
        assert!(sizes(steps(6)).len() > 1);
    }
}
