//! How calls ended, on its way from the engine to the histograms.
//!
//! The engine puts what is to be counted into a bounded queue and goes on; a thread counts it, which costs more than
//! the queue. It sleeps until something is there, then lets more come before it looks: so it wakes a few times a
//! second at most, and no call pays for waking it more often.

use crate::{metrics::Instruments, watched::Watched};
use foldhash::HashMap;
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use toolyard::{Dedupe, ErrorKind, Event, EventKind, EventSink, SessionId};

/// How many ends and attempts may wait to be counted.
const WAITING_MAX: usize = 65_536;

/// How long the thread lets more come.
const PAUSE: Duration = Duration::from_millis(100);

/// Which call: its session, its batch and its place in it.
type CallKey = (SessionId, u64, u32);

/// What is counted.
enum Point {
    /// An attempt of a call has begun.
    Attempt { call: CallKey, number: u32, at_us: u64 },
    /// A call has ended.
    End { call: CallKey, tool: Arc<str>, at_us: u64, queue_ms: u64, dedupe: Dedupe, error: Option<ErrorKind> },
}

impl Point {
    fn of(event: &Event) -> Option<Self> {
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

/// What waits to be counted.
#[derive(Default)]
struct Waiting {
    points: Vec<Point>,
    /// Points for which there was no room.
    missed: u64,
    closed: bool,
}

/// The calls that have begun and not ended.
#[derive(Default)]
struct Begun(HashMap<CallKey, Ran>);

#[derive(Clone, Copy)]
struct Ran {
    since_us: u64,
    attempts: u32,
}

/// The queue, and what it is counted with.
pub(crate) struct Ends {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    begun: Mutex<Begun>,
    /// `None` where nobody wants to know.
    instruments: Option<Instruments>,
}

impl Ends {
    /// Nobody counts.
    pub(crate) fn unrecorded() -> Arc<Self> {
        Arc::new(Self::new(None))
    }

    /// Counted with these, on a thread of its own until it is closed.
    pub(crate) fn recorded_by(instruments: Instruments) -> Arc<Self> {
        let ends = Arc::new(Self::new(Some(instruments)));
        let counted = ends.clone();
        let thread = thread::Builder::new().name("toolyard-otel".to_owned());
        // Without the thread what waits is counted when it is flushed.
        let _ = thread.spawn(move || counted.count_until_closed());
        ends
    }

    fn new(instruments: Option<Instruments>) -> Self {
        Self { waiting: Mutex::default(), wake: Condvar::new(), begun: Mutex::default(), instruments }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, point: Point) {
        let mut waiting = self.waiting();
        if waiting.points.len() >= WAITING_MAX || waiting.closed {
            waiting.missed += 1;
            return;
        }
        waiting.points.push(point);
        let is_first = waiting.points.len() == 1;
        drop(waiting);
        if is_first {
            self.wake.notify_one();
        }
    }

    fn count_until_closed(&self) {
        let mut waiting = self.waiting();
        loop {
            waiting = self
                .wake
                .wait_while(waiting, |waiting| waiting.points.is_empty() && !waiting.closed)
                .unwrap_or_else(PoisonError::into_inner);
            let pause = self.wake.wait_timeout_while(waiting, PAUSE, |waiting| !waiting.closed);
            let closed = pause.unwrap_or_else(PoisonError::into_inner).0.closed;
            self.count();
            if closed {
                return;
            }
            waiting = self.waiting();
        }
    }

    /// Counts what waits.
    fn count(&self) {
        let Some(instruments) = &self.instruments else { return };
        // One at a time: an end is not to be counted before its attempts.
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let (points, missed) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.points), std::mem::take(&mut waiting.missed))
        };
        points.into_iter().for_each(|point| begun.count(point, instruments));
        if missed > 0 {
            // The ends of some that have begun may be among them: those would stay for ever.
            begun.0.clear();
            instruments.missed(missed);
        }
    }

    /// Counts what waits, and takes no more.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.wake.notify_one();
        self.count();
    }
}

impl Begun {
    fn count(&mut self, point: Point, instruments: &Instruments) {
        match point {
            Point::Attempt { call, number, at_us } => {
                let ran = self.0.entry(call).or_insert(Ran { since_us: at_us, attempts: number });
                ran.attempts = number;
            }
            Point::End { call, tool, at_us, queue_ms, dedupe, error } => match (self.0.remove(&call), dedupe)
            {
                (Some(ran), _) => {
                    let seconds = Duration::from_micros(at_us.saturating_sub(ran.since_us)).as_secs_f64();
                    instruments.ran(&tool, seconds, Duration::from_millis(queue_ms).as_secs_f64(), error);
                    instruments.tried(&tool, ran.attempts, error);
                }
                (None, Dedupe::Fresh) => instruments.tried(&tool, 0, error),
                (None, Dedupe::Replayed) => instruments.replayed(&tool),
                (None, Dedupe::Joined) => {}
            },
        }
    }
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ends").field("waiting", &self.waiting().points.len()).finish_non_exhaustive()
    }
}

/// Counts how calls end.
#[derive(Debug)]
pub struct EndsSink {
    ends: Arc<Ends>,
    watched: Arc<Watched>,
}

impl EndsSink {
    pub(crate) fn new(ends: Arc<Ends>, watched: Arc<Watched>) -> Self {
        Self { ends, watched }
    }
}

impl EventSink for EndsSink {
    fn accept(&self, event: &Event) {
        if self.ends.instruments.is_some()
            && let Some(point) = Point::of(event)
        {
            self.ends.put(point);
        }
    }

    /// The engine stops: what it did is counted, and how it stands is looked at once more.
    fn flush(&self) {
        self.watched.look();
        self.ends.count();
    }
}
