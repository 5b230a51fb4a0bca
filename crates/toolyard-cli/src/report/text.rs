//! The report for people: one bar per call over the time of its batch, no wider than the terminal (KT-13).

use super::{
    bar::{self, CUT},
    layout::{GAP, INDENT, Layout, Needs},
    rows::{Row, rows},
    scale::Scale,
    timeline::{Span, Timeline},
    waits::{Wait, Widths, waits},
};
use crate::display::{Brief, count, cut, fit, fit_end, padded, padded_left, width};
use anstyle::{AnsiColor, Style};
use std::time::Duration;
use toolyard::{Dedupe, Routing};

/// The number of rows.
pub(super) const ROWS_MAX: usize = 100;

/// How much of an id and of a name is looked at.
const NAME_MAX: usize = 40;

/// How many of the waits that are not on the scale are listed.
const CUTS_LISTED: usize = 8;

/// Draws the timeline on lines of at most so many columns.
pub(super) fn draw(timeline: &Timeline, widths: &Widths, columns: usize) -> String {
    let rows = rows(timeline, &waits(timeline, widths));
    let shown: Vec<Cells> = rows.iter().take(ROWS_MAX).map(Cells::of).collect();
    let layout = Layout::new(needs(&shown), columns);
    let scale = Scale::new(timeline, layout.bar);
    let mut text = Line::of(&layout, &Cells::head(), &bar::head(&scale, layout.bar), columns);
    for (row, cells) in rows.iter().zip(&shown) {
        text += &Line::of(&layout, cells, &bar::bar(row, &scale, layout.bar), columns);
    }
    let left_out = rows.iter().skip(ROWS_MAX).map(|row| row.spans.len()).sum();
    let lines = [cut_out(&scale), more(left_out)];
    lines.iter().flatten().fold(text, |text, line| text + &fit(line, columns) + "\n")
}

/// What is not on the scale.
fn cut_out(scale: &Scale) -> Option<String> {
    let cuts: Vec<Duration> = scale.cuts().map(|cut| cut.time).collect();
    let all = Brief(cuts.iter().sum());
    let mut listed: Vec<String> =
        cuts.iter().take(CUTS_LISTED).map(|time| Brief(*time).to_string()).collect();
    if cuts.len() > CUTS_LISTED {
        listed.push("…".to_owned());
    }
    match cuts.len() {
        0 => None,
        1 => Some(format!("{CUT} {all} not on the scale: no call ran, and a person was asked")),
        _ => Some(format!(
            "{CUT} {all} not on the scale: no call ran, and a person was asked ({})",
            listed.join(", ")
        )),
    }
}

/// What has no row.
fn more(calls: usize) -> Option<String> {
    (calls > 0).then(|| format!("… and {}; --report html=FILE shows all", count(calls, "more call")))
}

fn needs(shown: &[Cells]) -> Needs {
    let head = Cells::head();
    let widest =
        |of: fn(&Cells) -> &str| shown.iter().chain([&head]).map(|cells| width(of(cells))).max().unwrap_or(0);
    Needs {
        run: widest(|cells| &cells.run),
        id: widest(|cells| &cells.id),
        tool: widest(|cells| &cells.tool),
        class: widest(|cells| cells.class),
        waited: widest(|cells| &cells.waited),
        ran: widest(|cells| &cells.ran),
        remark: widest(|cells| &cells.beside),
    }
}

/// What stands in the columns of a row.
struct Cells {
    run: String,
    id: String,
    /// The first and the last id of a folded row.
    ends: Option<[String; 2]>,
    tool: String,
    class: &'static str,
    waited: String,
    ran: String,
    /// Its remarks beside it, where the time of a single wait stands already, and on a line of their own.
    beside: String,
    below: String,
    style: Style,
}

impl Cells {
    fn head() -> Self {
        let [run, id, tool, waited, ran] = ["run", "call", "tool", "waited", "ran"].map(str::to_owned);
        let (beside, below) = (String::new(), String::new());
        Self { run, id, ends: None, tool, class: "class", waited, ran, beside, below, style: Style::new() }
    }

    fn of(row: &Row<'_>) -> Self {
        let (first, calls) = (row.first(), row.spans.len());
        let most = if row.is_folded() { "≤ " } else { "" };
        let longest = |of: fn(&Span) -> Duration| {
            format!("{most}{}", Brief(row.spans.iter().map(of).max().unwrap_or_default()))
        };
        let tool = fit(&first.tool, NAME_MAX);
        let (id, ends, tool) = match row.spans.last() {
            Some(last) if row.is_folded() => {
                let ends = [first, last].map(|span| fit(span.call_id.as_str(), NAME_MAX));
                (ends.join("–"), Some(ends), format!("×{calls} {tool}"))
            }
            _ => (fit(first.call_id.as_str(), NAME_MAX), None, tool),
        };
        let wait = |wait: &Wait| format!("waited {most}{wait}");
        let below: Vec<String> = remarks(first).into_iter().chain(row.waits.iter().map(wait)).collect();
        let mut beside = below.clone();
        if let ([only], Some(last)) = (row.waits.as_slice(), beside.last_mut()) {
            *last = format!("for {}", only.cause);
        }
        Self {
            run: first.run.to_string(),
            id,
            ends,
            tool,
            class: first.routing.as_str(),
            waited: longest(|span| span.blocked() + span.queued()),
            ran: first.started.map_or_else(|| "-".to_owned(), |_| longest(Span::ran)),
            beside: beside.join("; "),
            below: below.join("; "),
            style: style(first),
        }
    }
}

impl Cells {
    /// Its id, or its two: of those the ends are shown where there is no room, because providers' ids begin alike.
    fn id(&self, columns: usize) -> String {
        match &self.ends {
            Some([first, last]) if width(&self.id) > columns && columns > 2 => {
                let half = (columns - 1) / 2;
                format!("{}–{}", fit_end(first, half), fit_end(last, columns - 1 - half))
            }
            _ => fit(&self.id, columns),
        }
    }
}

/// A line that is never wider than it may be.
struct Line {
    text: String,
    left: usize,
}

impl Line {
    /// The line of a row, and the one below it.
    fn of(layout: &Layout, cells: &Cells, bar: &str, columns: usize) -> String {
        let mut line = Self { text: String::new(), left: columns };
        line.column(&padded_left(&cells.run, layout.run), layout.run);
        line.column(&padded(&cells.id(layout.id), layout.id), layout.id);
        line.column(&padded(&fit(&cells.tool, layout.tool), layout.tool), layout.tool);
        let plain = cells.style == Style::new();
        if !plain {
            line.text += &cells.style.render().to_string();
        }
        line.column(&padded(cells.class, layout.class), layout.class);
        line.push(bar);
        if !plain {
            line.text += &cells.style.render_reset().to_string();
        }
        for (text, width) in [(&cells.waited, layout.waited), (&cells.ran, layout.ran)] {
            if width > 0 {
                line.push(&" ".repeat(GAP));
                line.push(&padded_left(text, width));
            }
        }
        if width(&cells.beside) <= layout.beside {
            line.push(&" ".repeat(GAP));
            line.push(&cells.beside);
            return format!("{}\n", line.text.trim_end());
        }
        let mut below = Self { text: String::new(), left: columns };
        below.push(&" ".repeat(INDENT));
        below.push(&fit(&cells.below, columns.saturating_sub(INDENT)));
        format!("{}\n{}\n", line.text.trim_end(), below.text.trim_end())
    }

    /// A column and the gap behind it, unless it is left out.
    fn column(&mut self, text: &str, width: usize) {
        if width > 0 {
            self.push(text);
            self.push(&" ".repeat(GAP));
        }
    }

    fn push(&mut self, text: &str) {
        let text = cut(text, self.left);
        self.left -= width(text).min(self.left);
        self.text += text;
    }
}

/// The remarks on how a call ended.
pub(super) fn remarks(span: &Span) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(error) = span.error {
        let after = error.last.map_or_else(String::new, |last| format!(" after {last}"));
        let again = error.retry_after.map_or_else(String::new, |wait| format!(", retry in {}", Brief(wait)));
        remarks.push(format!("{}{after}{again}", error.kind));
    }
    match span.dedupe {
        Dedupe::Fresh => {}
        Dedupe::Joined => remarks.push("joined another call's run".to_owned()),
        Dedupe::Replayed => remarks.push("replayed an earlier result".to_owned()),
        Dedupe::Reconciled => remarks.push("had done its work before a crash".to_owned()),
    }
    if span.attempts.len() > 1 || span.attempts.iter().any(|attempt| attempt.retry.is_some()) {
        let between = Brief(span.between_attempts());
        remarks.push(format!("{}, {between} between", count(span.attempts.len(), "attempt")));
    }
    // Use the word that the results use.
    let stopped = span.error.and_then(|error| serde_json::to_value(error.retry_stopped?).ok());
    if let Some(word) = stopped.as_ref().and_then(|word| word.as_str()) {
        remarks.push(format!("retry stopped: {word}"));
    }
    remarks
}

fn style(span: &Span) -> Style {
    let color = match span.routing {
        _ if span.error.is_some() => AnsiColor::Red,
        Routing::Read => AnsiColor::Cyan,
        Routing::Serial => AnsiColor::Yellow,
        Routing::Concurrent => AnsiColor::Magenta,
        Routing::ShortCircuit => AnsiColor::Red,
    };
    color.on_default()
}

/// The totals of one batch or of many.
pub(super) fn totals(runs: u64, calls: u64, failed: u64, elapsed: Duration) -> String {
    let ok = calls - failed;
    let calls = count(usize::try_from(calls).unwrap_or(usize::MAX), "call");
    let runs = count(usize::try_from(runs).unwrap_or(usize::MAX), "run");
    format!("{calls} in {runs}: {ok} ok, {failed} failed; {}", Brief(elapsed))
}

/// How long the calls take one by one: measured, if they ran so, or else estimated. Calls that run side by side wait for
/// each other's processors and threads, so the sum of their run times is an upper bound. It does not include the time
/// between calls: a sum below the elapsed time bounds nothing and is left out.
pub(super) fn one_by_one(is_measured: bool, elapsed: Duration, run_times: Duration) -> String {
    match is_measured {
        true => ", one by one (measured)".to_owned(),
        false if run_times > elapsed => {
            format!(", the calls one by one: at most {} (estimated)", Brief(run_times))
        }
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{rows::tests::span, timeline::SpanError},
        *,
    };
    use console::strip_ansi_codes;
    use proptest::prelude::*;
    use toolyard::{ErrorKind, PoolWidths};

    fn widths() -> Widths {
        Widths {
            pools: PoolWidths::default(),
            max_in_flight: None,
            tree_max_in_flight: None,
            tools: Default::default(),
            rates: Default::default(),
        }
    }

    fn drawn(spans: Vec<Span>, columns: usize) -> String {
        let drawn = draw(&Timeline { began: None, spans }, &widths(), columns);
        strip_ansi_codes(&drawn).into_owned()
    }

    /// Two reads, a write that a person was asked about, and twenty reads behind it.
    fn asked() -> Vec<Span> {
        let ms = Duration::from_millis;
        let mut write = span("write", 1, 5010, 5020);
        (write.routing, write.asked) = (Routing::Serial, Some((ms(2), ms(5009))));
        let behind =
            (0..20).map(|at| Span { call_id: format!("r{at}").into(), ..span("read", 2, 5021, 5030) });
        [span("read", 0, 0, 10), span("list", 0, 0, 8), write].into_iter().chain(behind).collect()
    }

    /// KT-13: of the long ids that providers give, which begin alike, the ends are shown: those of the first and of the last.
    #[test]
    fn a_folded_row_shows_which_calls_it_has() {
        let spans = (10..30).map(|at| {
            let id = format!("call_0123456789abcdefghijkl{at}");
            Span { call_id: id.into(), ..span("read", 0, 0, 10) }
        });
        let spans: Vec<_> = spans.collect();
        for columns in [120, 100, 80] {
            let text = drawn(spans.clone(), columns);
            let row = text.lines().find(|line| line.contains("×20")).unwrap();
            assert!(row.contains("10–…") && row.contains("29 "), "{text}");
        }
    }

    /// KT-13: at the usual width, with the reason beside each row.
    #[test]
    fn rows_are_folded_and_waits_for_people_cut_out() {
        let text = drawn(asked(), 110);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7, "{text}");
        assert!(
            lines[0].starts_with("run  call ") && lines[0].contains('┆') && lines[0].contains("31.0 ms"),
            "{text}"
        );
        assert!(
            lines[3].contains('█') && lines[4].starts_with("     waited 5.01 s for an answer; "),
            "{text}"
        );
        assert!(lines[5].contains("r0–r19") && lines[5].contains("×20 read"), "{text}");
        assert!(
            lines[5].contains("≤ 9.00 ms") && lines[5].ends_with("for the end of run 1 [serial]"),
            "{text}"
        );
        assert_eq!(lines[6], "┆ 5.00 s not on the scale: no call ran, and a person was asked", "{text}");
    }

    /// KT-13: with little room the reasons stand below, and then columns are left out.
    #[test]
    fn a_narrow_terminal_has_the_reasons_below() {
        let text = drawn(asked(), 60);
        assert!(text.contains("\n     waited ≤ 5.02 s for the end of run 1 [serial]\n"), "{text}");
        let text = drawn(asked(), 20);
        assert!(text.starts_with("call    0") && text.contains("read_0  █"), "{text}");
    }

    /// KT-13: what has no row is counted.
    #[test]
    fn rows_are_bounded() {
        let tools = ["a", "b"];
        let spans: Vec<Span> = (0..500).map(|at| span(tools[at % 2], 0, 0, 10)).collect();
        let text = drawn(spans, 100);
        assert_eq!(text.lines().count(), 1 + ROWS_MAX + 1);
        assert!(text.ends_with("\n… and 400 more calls; --report html=FILE shows all\n"), "{text}");
    }

    fn a_span() -> impl Strategy<Value = Span> {
        let name = "[a-z_]{0,30}|[漢字é👩\u{200d}\u{fe0f}\u{202e}\n]{0,12}";
        let times = (0..50_000_u64, 0..20_000_u64, 0..20_000_u64, 0..5_u64);
        (name, name, times, 0..4_u32, proptest::option::of((0..50_000_u64, 0..20_000_u64)), 0..4_u8).prop_map(
            |(id, tool, (ready, queued, ran, fine), run, asked, end)| {
                let ms = Duration::from_millis;
                let mut span = span(&tool, run, ready + queued, ready + queued + ran);
                (span.call_id, span.ready) =
                    (id.as_str().into(), ms(ready) / (1 + u32::try_from(fine).unwrap_or(0)));
                span.asked = asked.map(|(from, long)| (ms(from), ms(from + long)));
                if end == 0 {
                    let wait = Some(ms(28_000));
                    let last = Some(ErrorKind::Transient);
                    span.error = Some(SpanError {
                        kind: ErrorKind::CircuitOpen,
                        last,
                        retry_after: wait,
                        retry_stopped: None,
                    });
                }
                if end == 1 {
                    span.started = None;
                }
                span
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// KT-13: no line is wider than the terminal, and there is a bounded number of them.
        #[test]
        fn every_line_fits(spans in proptest::collection::vec(a_span(), 1..130), columns in 1..180_usize) {
            let text = drawn(spans, columns);
            for line in text.lines() {
                prop_assert!(width(line) <= columns, "{} > {columns}: {line:?}", width(line));
            }
            prop_assert!(text.lines().count() <= 2 * ROWS_MAX + 3);
        }
    }

    #[test]
    fn the_sum_of_run_times_is_shown_only_if_it_is_longer() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(50));
        assert_eq!(totals(1, 5, 1, short), "5 calls in 1 run: 4 ok, 1 failed; 20.0 ms");
        assert_eq!(one_by_one(false, short, long), ", the calls one by one: at most 50.0 ms (estimated)");
        assert_eq!(one_by_one(false, long, short), "");
        assert_eq!(one_by_one(true, long, short), ", one by one (measured)");
    }
}
