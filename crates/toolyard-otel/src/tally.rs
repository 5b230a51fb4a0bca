//! How one event changes the metrics.

use crate::metrics::Instruments;
use foldhash::HashMap;
use std::{sync::Arc, time::Duration};
use toolyard::{Dedupe, ErrorKind, Event, EventKind, SessionId};

/// The key of a call: its session, its batch and its index there.
type CallKey = (SessionId, u64, u32);

/// One thing to count.
pub(crate) enum Point {
    /// An attempt of a call has started.
    Attempt { call: CallKey, number: u32, at_us: u64 },
    /// A call has ended.
    End { call: CallKey, tool: Arc<str>, at_us: u64, queue_ms: u64, dedupe: Dedupe, error: Option<ErrorKind> },
}

impl Point {
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let call = || Some((event.session.clone(), event.batch?, event.index?));
        let at_us = event.mono_us;
        match &event.kind {
            EventKind::Attempt => Some(Self::Attempt { call: call()?, number: event.attempt?, at_us }),
            EventKind::Completed { tool_name, queue_ms, dedupe, .. } => Some(Self::End {
                call: call()?,
                tool: tool_name.clone(),
                at_us,
                queue_ms: *queue_ms,
                dedupe: *dedupe,
                error: None,
            }),
            kind => kind.failure().and_then(|failure| {
                let (tool, queue_ms, dedupe) = (failure.tool_name.clone(), failure.queue_ms, failure.dedupe);
                Some(Self::End { call: call()?, tool, at_us, queue_ms, dedupe, error: Some(failure.code) })
            }),
        }
    }
}

/// The calls that have started but not ended.
#[derive(Default)]
pub(crate) struct OpenCalls(HashMap<CallKey, Running>);

#[derive(Clone, Copy)]
struct Running {
    since_us: u64,
    attempts: u32,
}

impl OpenCalls {
    /// Forgets all calls. Points were missed, possibly ends of these calls, whose entries would then stay forever.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Counts one point. Points must come in the order of their events.
    pub(crate) fn count(&mut self, point: Point, instruments: &Instruments) {
        match point {
            Point::Attempt { call, number, at_us } => {
                let running = self.0.entry(call).or_insert(Running { since_us: at_us, attempts: number });
                running.attempts = number;
            }
            Point::End { call, tool, at_us, queue_ms, dedupe, error } => match (self.0.remove(&call), dedupe)
            {
                (Some(running), _) => {
                    let seconds = Duration::from_micros(at_us.saturating_sub(running.since_us)).as_secs_f64();
                    instruments.record_run(
                        &tool,
                        seconds,
                        Duration::from_millis(queue_ms).as_secs_f64(),
                        error,
                    );
                    instruments.record_attempts(&tool, running.attempts, error);
                }
                (None, Dedupe::Fresh) => instruments.record_attempts(&tool, 0, error),
                (None, Dedupe::Replayed) => instruments.record_replay(&tool),
                (None, Dedupe::Joined | Dedupe::Reconciled) => {}
            },
        }
    }
}
