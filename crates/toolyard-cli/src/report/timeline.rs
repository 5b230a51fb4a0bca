//! What became of the calls of a batch, and when.

use super::times::BatchTimes;
use std::{sync::Arc, time::Duration};
use toolyard::{CallId, ErrorKind, Outcome, Routing};

/// The calls of a batch in their order, with times since the batch came in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    /// The calls.
    pub(crate) spans: Vec<Span>,
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// The call's id.
    pub(crate) call_id: CallId,
    /// The tool's name.
    pub(crate) tool: Arc<str>,
    /// How it was routed.
    pub(crate) routing: Routing,
    /// The index of its run.
    pub(crate) run: u32,
    /// When it came in: at the begin, or as soon as the model had written it.
    pub(crate) came: Duration,
    /// When its run began and it stood in line.
    pub(crate) ready: Duration,
    /// When it had its permits; `None` when it never started.
    pub(crate) started: Option<Duration>,
    /// When its result was there.
    pub(crate) ended: Duration,
    /// Why it has no output.
    pub(crate) error: Option<ErrorKind>,
}

impl Span {
    /// From when it came to its place in line.
    pub(crate) fn stood_by(&self) -> Duration {
        self.ready.saturating_sub(self.came)
    }

    /// From its place in line to its permits.
    pub(crate) fn queued(&self) -> Duration {
        self.started.unwrap_or(self.ended).saturating_sub(self.ready)
    }

    /// From its permits to its end.
    pub(crate) fn ran(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| self.ended.saturating_sub(started))
    }
}

impl Timeline {
    /// What the outcomes and the events tell together.
    pub(crate) fn new(outcomes: &[Outcome], times: &BatchTimes) -> Self {
        let since = |at: Duration| at.saturating_sub(times.begun);
        let span = |(index, outcome): (usize, &Outcome)| {
            let of_call = times.calls.get(index).copied().unwrap_or_default();
            let started = of_call.called.map(since);
            let ended = match started {
                // The outcome counts from permit to end; the event of the end may come a little later.
                Some(started) => started + outcome.ran,
                None => of_call.ended.map_or(Duration::ZERO, since),
            };
            Span {
                call_id: outcome.call_id.clone(),
                tool: outcome.tool.clone(),
                routing: outcome.routing,
                run: outcome.run,
                came: of_call.came.filter(|_| times.streamed).map_or(Duration::ZERO, since),
                ready: started.map_or(ended, |started| started.saturating_sub(outcome.queued)),
                started,
                ended,
                error: outcome.error().map(|error| error.kind),
            }
        };
        Self { spans: outcomes.iter().enumerate().map(span).collect() }
    }

    /// Puts another batch behind this one, as further runs of the same.
    pub(crate) fn append(&mut self, later: Self) {
        let (runs, wall) = (self.runs(), self.wall());
        self.spans.extend(later.spans.into_iter().map(|mut span| {
            span.run += runs;
            span.ready += wall;
            span.ended += wall;
            span.started = span.started.map(|started| started + wall);
            span
        }));
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> u32 {
        self.spans.iter().map(|span| span.run + 1).max().unwrap_or_default()
    }

    /// From the batch to its last result.
    pub(crate) fn wall(&self) -> Duration {
        self.spans.iter().map(|span| span.ended).max().unwrap_or_default()
    }

    /// The sum of the calls' run times, in which they may have waited for a processor or a thread.
    pub(crate) fn sum_of_run_times(&self) -> Duration {
        self.spans.iter().map(Span::ran).sum()
    }

    /// How many calls have no output.
    pub(crate) fn failed(&self) -> usize {
        self.spans.iter().filter(|span| span.error.is_some()).count()
    }
}
