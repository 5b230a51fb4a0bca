//! What calls waited for: the run before their own, and then a permit of something that was full.

use super::timeline::{Span, Timeline};
use crate::{display::Brief, setup::Setup};
use std::{collections::HashMap, fmt, num::NonZeroUsize, time::Duration};
use toolyard::{PoolWidths, Rate, Registry, Routing, ToolClass};

/// Shorter waits are work of the engine itself and are not reported.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// The limits on everything that a call may wait for.
#[derive(Debug, Clone)]
pub(crate) struct Widths {
    /// The pools.
    pub(crate) pools: PoolWidths,
    /// The limit on all calls of a session.
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    /// The limit on all calls of a session and its sub-agents.
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    /// The limits of single tools.
    pub(crate) tools: HashMap<String, NonZeroUsize>,
    /// The rates of single tools.
    pub(crate) rates: HashMap<String, Rate>,
}

impl Widths {
    /// The widths of an engine.
    pub(crate) fn new(setup: &Setup, registry: &Registry) -> Self {
        let tools = registry.list().into_iter().filter_map(|entry| {
            let most = entry.spec().settings.max_concurrency?;
            Some((entry.name().to_owned(), most))
        });
        let rates = registry.list().into_iter().filter_map(|entry| {
            let rate = entry.spec().settings.rate?;
            Some((entry.name().to_owned(), rate))
        });
        Self {
            pools: setup.config.pools,
            max_in_flight: setup.max_in_flight,
            tree_max_in_flight: setup.config.tree_max_in_flight,
            tools: tools.collect(),
            rates: rates.collect(),
        }
    }

    fn pool(&self, class: ToolClass) -> usize {
        match class {
            ToolClass::Read => self.pools.read,
            ToolClass::Serial => 1,
            ToolClass::Concurrent => self.pools.concurrent,
        }
    }
}

/// One cause of waiting, and its duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) cause: Cause,
    pub(crate) time: Duration,
}

/// What a call waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Whoever was asked about it.
    Answer,
    /// The run before its own.
    Run { run: u32, routing: Routing },
    /// A permit of its pool.
    Pool { class: ToolClass, width: usize },
    /// A permit of its tool.
    Tool { tool: String, width: usize },
    /// A permit of its session.
    Session { width: usize },
    /// A permit of its session tree.
    Tree { width: usize },
    /// A token of its tool's rate.
    Rate { tool: String, rate: Rate },
    /// A permit of an unknown kind: the times do not show which.
    Permit,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer => f.write_str("an answer"),
            Self::Run { run, routing } => write!(f, "the end of run {run} [{routing}]"),
            Self::Pool { class, width } => write!(f, "a permit of pool {class} ({width} wide)"),
            Self::Tool { tool, width } => write!(f, "a permit of tool {tool} ({width} at once)"),
            Self::Session { width } => write!(f, "max_in_flight ({width} at once)"),
            Self::Tree { width } => write!(f, "tree_max_in_flight ({width} at once)"),
            Self::Rate { tool, rate } => write!(f, "the rate of tool {tool} ({rate})"),
            Self::Permit => f.write_str("a permit"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", Brief(self.time), self.cause)
    }
}

/// The waits of every call, in the order of the timeline.
pub(crate) fn waits(timeline: &Timeline, widths: &Widths) -> Vec<Vec<Wait>> {
    let loads = Loads::of(timeline);
    let mut ends = HashMap::<u32, Duration>::new();
    for span in &timeline.spans {
        let end = ends.entry(span.run).or_default();
        *end = span.ended.max(*end);
    }
    let mut before = None;
    let mut current: Option<(u32, Routing)> = None;
    let of_span = |span: &Span| {
        // Refused calls are answered at once, so no call waits for a run of them.
        if span.routing != Routing::ShortCircuit && current.is_none_or(|(run, _)| run != span.run) {
            before = current.replace((span.run, span.routing));
        }
        // A run that ended before the model had written the call kept it from nothing.
        let before = before.filter(|(run, _)| span.started.is_some() && ends[run] > span.arrived);
        let for_answer =
            span.asked.map(|(from, to)| Wait { cause: Cause::Answer, time: to.saturating_sub(from) });
        let blocked = span.blocked().saturating_sub(span.asked_within(span.arrived, span.ready));
        let for_run = before.map(|(run, routing)| Wait { cause: Cause::Run { run, routing }, time: blocked });
        let until = span.started.unwrap_or(span.ready);
        let queued = span.queued().saturating_sub(span.asked_within(span.ready, until));
        let for_permit = span.started.map(|_| Wait { cause: loads.cause(span, widths), time: queued });
        let waits = for_answer.into_iter().chain(for_run).chain(for_permit);
        waits.filter(|wait| wait.time >= WAIT_MIN).collect()
    };
    timeline.spans.iter().map(of_span).collect()
}

/// The number of calls that ran at any instant.
#[derive(Debug, Default)]
struct Load {
    starts: Vec<Duration>,
    ends: Vec<Duration>,
}

impl Load {
    fn of<'a>(spans: impl Iterator<Item = &'a Span>) -> Self {
        let (mut starts, mut ends): (Vec<_>, Vec<_>) = spans.flat_map(Span::held).unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { starts, ends }
    }

    fn at(&self, instant: Duration) -> usize {
        let until = |times: &[Duration]| times.partition_point(|time| *time <= instant);
        until(&self.starts).saturating_sub(until(&self.ends))
    }

    /// The number right before the instant.
    fn before(&self, instant: Duration) -> usize {
        let before = |times: &[Duration]| times.partition_point(|time| *time < instant);
        before(&self.starts).saturating_sub(before(&self.ends))
    }

    /// The last end of a call up to the instant.
    fn last_end(&self, instant: Duration) -> Option<Duration> {
        let ended = self.ends.partition_point(|time| *time <= instant);
        self.ends[..ended].last().copied()
    }
}

/// The loads that a call may have waited for.
struct Loads<'a> {
    all: Load,
    by_routing: HashMap<Routing, Load>,
    by_tool: HashMap<&'a str, Load>,
}

impl<'a> Loads<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let mut by_routing = HashMap::<Routing, Vec<&Span>>::new();
        let mut by_tool = HashMap::<&str, Vec<&Span>>::new();
        for span in &timeline.spans {
            by_routing.entry(span.routing).or_default().push(span);
            by_tool.entry(&span.tool).or_default().push(span);
        }
        let load = |spans: Vec<&Span>| Load::of(spans.into_iter());
        Self {
            all: Load::of(timeline.spans.iter()),
            by_routing: by_routing.into_iter().map(|(routing, spans)| (routing, load(spans))).collect(),
            by_tool: by_tool.into_iter().map(|(tool, spans)| (tool, load(spans))).collect(),
        }
    }

    /// What the call was queued for: what was full half-way through its wait. If nothing was, it waited for a token of
    /// its tool's rate; without a rate, for what was full until the last call before it ended, whose permit it got.
    fn cause(&self, span: &Span, widths: &Widths) -> Cause {
        let half_way = span.ready + span.queued() / 2;
        let full = self.full(span, widths, |load| load.at(half_way));
        let token = || {
            let rate = *widths.rates.get(span.tool.as_ref())?;
            Some(Cause::Rate { tool: span.tool.to_string(), rate })
        };
        // A busy machine may let time pass between two calls, in which none of them runs.
        let released = || {
            let release = self.all.last_end(span.started?)?;
            self.full(span, widths, |load| load.before(release))
        };
        full.or_else(token).or_else(released).unwrap_or(Cause::Permit)
    }

    /// What of all that the call needs was full at the instant at which `load` looks.
    fn full(&self, span: &Span, widths: &Widths, load: impl Fn(&Load) -> usize) -> Option<Cause> {
        let tool = span.tool.as_ref();
        if let Some(most) = widths.tools.get(tool)
            && self.by_tool.get(tool).is_some_and(|calls| load(calls) >= most.get())
        {
            return Some(Cause::Tool { tool: tool.to_owned(), width: most.get() });
        }
        let all = load(&self.all);
        let is_reached =
            |limit: Option<NonZeroUsize>| limit.map(NonZeroUsize::get).filter(|width| all >= *width);
        if let Some(width) = is_reached(widths.max_in_flight) {
            return Some(Cause::Session { width });
        }
        if let Some(width) = is_reached(widths.tree_max_in_flight) {
            return Some(Cause::Tree { width });
        }
        let class = span.routing.class()?;
        let width = widths.pool(class);
        let is_full = self.by_routing.get(&span.routing).is_some_and(|calls| load(calls) >= width);
        is_full.then_some(Cause::Pool { class, width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{CallId, Dedupe};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn span(tool: &str, routing: Routing, run: u32, [ready, started, ended]: [u64; 3]) -> Span {
        Span {
            call_id: CallId::from("c"),
            tool: tool.into(),
            routing,
            run,
            arrived: Duration::ZERO,
            ready: ms(ready),
            asked: None,
            started: Some(ms(started)),
            ended: ms(ended),
            attempts: Vec::new(),
            error: None,
            dedupe: Dedupe::Fresh,
        }
    }

    fn check(read: usize, most: Option<usize>, spans: Vec<Span>, expect: &[&[&str]]) {
        let width = |width| NonZeroUsize::new(width).unwrap();
        let widths = Widths {
            pools: PoolWidths::new(read, 10),
            max_in_flight: most.map(width),
            tree_max_in_flight: Some(width(12)),
            tools: HashMap::from([("slow".to_owned(), width(1))]),
            rates: HashMap::from([("rated".to_owned(), "5/s".parse().unwrap())]),
        };
        let shown: Vec<Vec<String>> = waits(&Timeline { began: None, spans }, &widths)
            .iter()
            .map(|waits| waits.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_call_waits_for_the_run_before_its_own() {
        let spans = vec![
            span("a", Routing::Read, 0, [0, 0, 12]),
            span("w", Routing::Serial, 1, [12, 12, 20]),
            span("a", Routing::Read, 2, [20, 20, 21]),
        ];
        check(
            20,
            None,
            spans,
            &[&[], &["12.0 ms for the end of run 0 [read]"], &["20.0 ms for the end of run 1 [serial]"]],
        );
    }

    /// CL-5: the time that the model takes to write a call is not a wait.
    #[test]
    fn a_call_waits_from_when_it_came() {
        let mut spans = vec![
            span("a", Routing::Read, 0, [0, 0, 12]),
            span("w", Routing::Serial, 1, [12, 12, 20]),
            span("a", Routing::Read, 2, [50, 50, 51]),
        ];
        spans[1].arrived = ms(5);
        spans[2].arrived = ms(49);
        check(20, None, spans, &[&[], &["7.00 ms for the end of run 0 [read]"], &[]]);
    }

    /// KT-13: the time that a question was open is a wait for its answer, and for nothing else.
    #[test]
    fn a_call_waits_for_its_answer() {
        let mut spans =
            vec![span("a", Routing::Read, 0, [0, 0, 12]), span("w", Routing::Serial, 1, [500, 500, 520])];
        spans[1].asked = Some((ms(1), ms(496)));
        let expect = ["495 ms for an answer", "5.00 ms for the end of run 0 [read]"];
        check(20, None, spans.clone(), &[&[], &expect]);
        spans[1].asked = Some((ms(500), ms(700)));
        (spans[1].started, spans[1].ended) = (Some(ms(701)), ms(710));
        let expect = ["200 ms for an answer", "500 ms for the end of run 0 [read]", "1.00 ms for a permit"];
        check(20, None, spans, &[&[], &expect]);
    }

    #[test]
    fn a_call_waits_for_what_is_full() {
        let two =
            |tool| vec![span(tool, Routing::Read, 0, [0, 0, 10]), span(tool, Routing::Read, 0, [0, 10, 20])];
        check(1, None, two("a"), &[&[], &["10.0 ms for a permit of pool read (1 wide)"]]);
        check(9, Some(1), two("a"), &[&[], &["10.0 ms for max_in_flight (1 at once)"]]);
        check(9, None, two("slow"), &[&[], &["10.0 ms for a permit of tool slow (1 at once)"]]);
        check(9, None, two("a"), &[&[], &["10.0 ms for a permit"]]);
        check(9, None, two("rated"), &[&[], &["10.0 ms for the rate of tool rated (5/s)"]]);
        let mut thirteen: Vec<_> = (0..12).map(|_| span("a", Routing::Read, 0, [0, 0, 10])).collect();
        thirteen.push(span("a", Routing::Read, 0, [0, 10, 20]));
        let mut expect = vec![&[] as &[&str]; 12];
        expect.push(&["10.0 ms for tree_max_in_flight (12 at once)"]);
        check(20, None, thirteen, &expect);
    }
    /// A call that was unblocked by another is started later on a busy machine, and no call runs half-way through its
    /// wait.
    #[test]
    fn a_gap_between_two_calls_does_not_hide_what_was_full() {
        let two =
            |tool| vec![span(tool, Routing::Read, 0, [0, 0, 10]), span(tool, Routing::Read, 0, [0, 50, 60])];
        check(9, Some(1), two("a"), &[&[], &["50.0 ms for max_in_flight (1 at once)"]]);
        check(1, None, two("a"), &[&[], &["50.0 ms for a permit of pool read (1 wide)"]]);
        check(9, None, two("slow"), &[&[], &["50.0 ms for a permit of tool slow (1 at once)"]]);
        check(9, Some(1), two("rated"), &[&[], &["50.0 ms for the rate of tool rated (5/s)"]]);
    }
}
