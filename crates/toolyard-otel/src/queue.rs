//! The queue of ended calls, between the engine and the histograms.
//!
//! The engine pushes each point into a bounded queue and goes on. A thread does the counting, which costs more than the
//! queue. It sleeps until a point arrives, and then pauses so that more can arrive. It therefore wakes only a few times
//! a second, and no call pays for waking it more often.

use crate::{
    metrics::Instruments,
    observed::ObservedEngines,
    tally::{OpenCalls, Point},
};
use parking_lot::{Condvar, Mutex};
use std::{sync::Arc, thread, time::Duration};
use toolyard::{Event, EventSink};

/// How many ends and attempts may wait to be counted.
const WAITING_MAX: usize = 65_536;

/// How long the thread pauses to let more points arrive.
const PAUSE: Duration = Duration::from_millis(100);

/// The points that wait to be counted.
#[derive(Default)]
struct Waiting {
    points: Vec<Point>,
    /// How many points were dropped because the queue was full or closed.
    missed: u64,
    closed: bool,
}

/// The queue, and the instruments that its points are counted with.
pub(crate) struct PointQueue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    open_calls: Mutex<OpenCalls>,
    /// `None` if metrics are not exported.
    instruments: Option<Instruments>,
}

impl PointQueue {
    /// A queue that nothing counts, for when metrics are not exported.
    pub(crate) fn disabled() -> Arc<Self> {
        Arc::new(Self::new(None))
    }

    /// A queue counted with these instruments, on a thread of its own until it is closed.
    pub(crate) fn recorded_by(instruments: Instruments) -> Arc<Self> {
        let queue = Arc::new(Self::new(Some(instruments)));
        let counted = queue.clone();
        let thread = thread::Builder::new().name("toolyard-otel".to_owned());
        // If the thread cannot be started, the points are counted when the queue is flushed.
        let _ = thread.spawn(move || counted.count_until_closed());
        queue
    }

    fn new(instruments: Option<Instruments>) -> Self {
        Self { waiting: Mutex::default(), wake: Condvar::new(), open_calls: Mutex::default(), instruments }
    }

    fn push(&self, point: Point) {
        let mut waiting = self.waiting.lock();
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
        let mut waiting = self.waiting.lock();
        loop {
            self.wake.wait_while(&mut waiting, |waiting| waiting.points.is_empty() && !waiting.closed);
            self.wake.wait_while_for(&mut waiting, |waiting| !waiting.closed, PAUSE);
            let closed = waiting.closed;
            drop(waiting);
            self.drain();
            if closed {
                return;
            }
            waiting = self.waiting.lock();
        }
    }

    /// Counts the waiting points.
    fn drain(&self) {
        let Some(instruments) = &self.instruments else { return };
        // One thread at a time, so that no end is counted before its attempts.
        let mut open_calls = self.open_calls.lock();
        let (points, missed) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.points), std::mem::take(&mut waiting.missed))
        };
        points.into_iter().for_each(|point| open_calls.count(point, instruments));
        if missed > 0 {
            open_calls.forget();
            instruments.record_missed(missed);
        }
    }

    /// Counts the waiting points, and accepts no more.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.wake.notify_one();
        self.drain();
    }
}

impl std::fmt::Debug for PointQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ends").field("waiting", &self.waiting.lock().points.len()).finish_non_exhaustive()
    }
}

/// The event sink that counts how calls end.
#[derive(Debug)]
pub struct EndsSink {
    queue: Arc<PointQueue>,
    observed: Arc<ObservedEngines>,
}

impl EndsSink {
    pub(crate) fn new(queue: Arc<PointQueue>, observed: Arc<ObservedEngines>) -> Self {
        Self { queue, observed }
    }
}

impl EventSink for EndsSink {
    fn accept(&self, event: &Event) {
        if self.queue.instruments.is_some()
            && let Some(point) = Point::of(event)
        {
            self.queue.push(point);
        }
    }

    /// Called when the engine stops: counts what is left, and reads the gauges once more.
    fn flush(&self) {
        self.observed.refresh();
        self.queue.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, EventKind, SessionId};

    /// OB-3, OB-4: points beyond the queue's bound are counted as missed, at no extra cost to the sender.
    #[test]
    fn a_full_queue() {
        let queue = PointQueue::disabled();
        let mut event = Event::new(SessionId::from("s"), AgentPath::root(), EventKind::Attempt);
        (event.batch, event.index, event.attempt) = (Some(1), Some(0), Some(1));
        for _ in 0..WAITING_MAX + 3 {
            queue.push(Point::of(&event).unwrap());
        }
        let waiting = queue.waiting.lock();
        assert_eq!((waiting.points.len(), waiting.missed), (WAITING_MAX, 3));
    }
}
