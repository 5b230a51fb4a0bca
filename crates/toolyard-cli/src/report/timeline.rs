//! What happened to the calls of a batch, and when.

use super::times::{AttemptTimes, BatchTimes, CallTimes};
use std::{sync::Arc, time::Duration};
use toolyard::{CallId, Dedupe, ErrorKind, Outcome, RetryStopped, Routing};

/// No person answers faster: a question that was settled before went to the program itself, as with `--approve auto`.
pub(super) const ANSWER_MIN: Duration = Duration::from_millis(100);

/// The calls of a batch in order, with times since the batch arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    /// When the batch arrived, since the engine was built; `None` if it has told nothing of the batch.
    pub(crate) began: Option<Duration>,
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
    /// When it arrived: at the start, or as soon as the model had written it.
    pub(crate) arrived: Duration,
    /// When its run started and it was queued.
    pub(crate) ready: Duration,
    /// While a person was asked about it.
    pub(crate) asked: Option<(Duration, Duration)>,
    /// When it got its permits; `None` if it never started.
    pub(crate) started: Option<Duration>,
    /// When its result was ready.
    pub(crate) ended: Duration,
    /// Its attempts.
    pub(crate) attempts: Vec<Attempt>,
    /// Why it has no output.
    pub(crate) error: Option<SpanError>,
    /// Whether it shares the result of another call.
    pub(crate) dedupe: Dedupe,
}

/// Why a call has no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanError {
    /// The error code.
    pub(crate) kind: ErrorKind,
    /// The error of its last attempt, if the call ended while waiting for the next one.
    pub(crate) last: Option<ErrorKind>,
    /// How long to wait before a retry.
    pub(crate) retry_after: Option<Duration>,
    /// Why it was not retried.
    pub(crate) retry_stopped: Option<RetryStopped>,
}

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// When it started.
    pub(crate) started: Duration,
    /// When it ended.
    pub(crate) ended: Duration,
    /// Its error and the backoff after it, if another attempt was to follow.
    pub(crate) retry: Option<(ErrorKind, Duration)>,
}

impl Span {
    /// From its arrival to being queued.
    pub(crate) fn blocked(&self) -> Duration {
        self.ready.saturating_sub(self.arrived)
    }

    /// From being queued to its permits.
    pub(crate) fn queued(&self) -> Duration {
        self.started.unwrap_or(self.ended).saturating_sub(self.ready)
    }

    /// How long of this period somebody was asked about it.
    pub(crate) fn asked_within(&self, from: Duration, to: Duration) -> Duration {
        self.asked.map_or(Duration::ZERO, |(asked, settled)| settled.min(to).saturating_sub(asked.max(from)))
    }

    /// From its permits to its end.
    pub(crate) fn ran(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| self.ended.saturating_sub(started))
    }

    /// The time between its attempts, and between the last one and its end.
    pub(crate) fn between_attempts(&self) -> Duration {
        let in_attempts: Duration =
            self.attempts.iter().map(|attempt| attempt.ended.saturating_sub(attempt.started)).sum();
        if self.attempts.is_empty() { Duration::ZERO } else { self.ran().saturating_sub(in_attempts) }
    }

    /// The periods in which it held permits.
    pub(crate) fn held(&self) -> impl Iterator<Item = (Duration, Duration)> {
        let attempts = self.attempts.iter().map(|attempt| (attempt.started, attempt.ended));
        let whole = self.started.filter(|_| self.attempts.is_empty()).map(|started| (started, self.ended));
        attempts.chain(whole)
    }

    fn of(
        outcome: &Outcome,
        times: &CallTimes,
        streamed: bool,
        since: impl Fn(Duration) -> Duration,
    ) -> Self {
        let started = times.started.map(&since);
        let ended = match started {
            // The outcome measures from permit to end; the event of the end may come slightly later.
            Some(started) => started + outcome.ran(),
            None => times.ended.map_or(Duration::ZERO, &since),
        };
        let attempt = |attempt: &AttemptTimes| Attempt {
            started: since(attempt.started),
            ended: attempt.failed.map_or(ended, |failed| since(failed.at)),
            retry: attempt.failed.map(|failed| (failed.error, failed.backoff)),
        };
        let asked = times.asked.map(|(from, to)| (since(from), to.map_or(ended, &since)));
        let asked = asked.filter(|(from, to)| to.saturating_sub(*from) >= ANSWER_MIN);
        let error = outcome.error().map(|error| SpanError {
            kind: error.kind,
            last: error.last_error.as_ref().map(|last| last.kind),
            retry_after: error.retry_after,
            retry_stopped: error.retry_stopped,
        });
        Self {
            call_id: outcome.call_id.clone(),
            tool: outcome.tool.clone(),
            routing: outcome.routing,
            run: outcome.run,
            arrived: times.arrived.filter(|_| streamed).map_or(Duration::ZERO, &since),
            ready: started.map_or(ended, |started| started.saturating_sub(outcome.queued())),
            asked,
            started,
            ended,
            attempts: times.attempts.iter().map(attempt).collect(),
            error,
            dedupe: outcome.dedupe,
        }
    }

    /// Shifts its times by `by`, except its arrival.
    fn shifted(mut self, by: Duration) -> Self {
        self.ready += by;
        self.ended += by;
        self.asked = self.asked.map(|(from, to)| (from + by, to + by));
        self.started = self.started.map(|started| started + by);
        for attempt in &mut self.attempts {
            attempt.started += by;
            attempt.ended += by;
        }
        self
    }
}

impl Timeline {
    /// Combines the outcomes with the times of their events.
    pub(crate) fn new(outcomes: &[Outcome], times: &BatchTimes) -> Self {
        let since = |at: Duration| at.saturating_sub(times.started.unwrap_or_default());
        let unseen = CallTimes::default();
        let span = |(index, outcome)| {
            let of_call = times.calls.get(index).unwrap_or(&unseen);
            Span::of(outcome, of_call, times.streamed, since)
        };
        Self { began: times.started, spans: outcomes.iter().enumerate().map(span).collect() }
    }

    /// Appends another batch, as further runs of this one.
    pub(crate) fn append(&mut self, later: Self) {
        let (runs, wall) = (self.runs(), self.wall());
        self.began = self.began.or(later.began);
        self.spans.extend(later.spans.into_iter().map(|mut span| {
            span.run += runs;
            span.shifted(wall)
        }));
    }

    /// The number of runs.
    pub(crate) fn runs(&self) -> u32 {
        self.spans.iter().map(|span| span.run + 1).max().unwrap_or_default()
    }

    /// From the batch's arrival to its last result.
    pub(crate) fn wall(&self) -> Duration {
        self.spans.iter().map(|span| span.ended).max().unwrap_or_default()
    }

    /// The sum of the calls' run times, including any wait for a processor or a thread.
    pub(crate) fn sum_of_run_times(&self) -> Duration {
        self.spans.iter().map(Span::ran).sum()
    }

    /// The number of calls without output.
    pub(crate) fn failed(&self) -> usize {
        self.spans.iter().filter(|span| span.error.is_some()).count()
    }
}
