//! When calls started and ended, according to their events.

use super::{at_once::AtOnce, breakers::BreakerChanges};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc, time::Duration};
use toolyard::{BreakerOf, ErrorKind, Event, EventKind, SessionId};

/// The times of one batch, since the engine was built.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchTimes {
    /// When it arrived.
    pub(crate) started: Option<Duration>,
    /// Whether its calls arrived one by one.
    pub(crate) streamed: bool,
    /// Its calls, by index.
    pub(crate) calls: Vec<CallTimes>,
}

/// The times of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallTimes {
    /// When it arrived.
    pub(crate) arrived: Option<Duration>,
    /// When a person was asked about it, and when that was settled.
    pub(crate) asked: Option<(Duration, Option<Duration>)>,
    /// When it got its permits.
    pub(crate) started: Option<Duration>,
    /// When its result was ready.
    pub(crate) ended: Option<Duration>,
    /// Its attempts, in order.
    pub(crate) attempts: Vec<AttemptTimes>,
}

/// The times of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptTimes {
    /// When it started.
    pub(crate) started: Duration,
    /// How it ended, if another attempt was to follow.
    pub(crate) failed: Option<Failed>,
}

/// The end of an attempt that another one was to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    /// When it failed.
    pub(crate) at: Duration,
    /// Its error.
    pub(crate) error: ErrorKind,
    /// The backoff before the next attempt.
    pub(crate) backoff: Duration,
}

impl CallTimes {
    /// Since when it runs: since its permits, or since its last attempt started.
    fn running_since(&self) -> Option<Duration> {
        let since = match self.attempts.as_slice() {
            [] => self.started,
            [.., last] if last.failed.is_some() => None,
            [_first] => self.started,
            [.., last] => Some(last.started),
        };
        since.filter(|_| self.ended.is_none())
    }

    fn record(&mut self, at: Duration, kind: &EventKind) {
        match kind {
            EventKind::Received { .. } => self.arrived = Some(at),
            EventKind::ConfirmationRequested(_) => self.asked = Some((at, None)),
            EventKind::ConfirmationResolved(_) => {
                if let Some((_, settled)) = &mut self.asked {
                    *settled = Some(at);
                }
            }
            EventKind::Called { .. } => self.started = Some(at),
            EventKind::Attempt => self.attempts.push(AttemptTimes { started: at, failed: None }),
            EventKind::Retry { delay_ms, code } => {
                let failed = Failed { at, error: *code, backoff: Duration::from_millis(*delay_ms) };
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.failed = Some(failed);
                }
            }
            kind if kind.is_terminal() => self.ended = Some(at),
            _ => {}
        }
    }
}

/// Listens to events and keeps the times of batches until they are taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    batches: Arc<Mutex<Batches>>,
    breaker_changes: Arc<Mutex<BreakerChanges>>,
    at_once: Arc<Mutex<AtOnce>>,
}

/// The times, by session and turn.
type Batches = HashMap<(SessionId, Option<u64>), BatchTimes>;

impl Recorder {
    /// The event sink that feeds this recorder.
    pub(crate) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let recorder = self.clone();
        move |event| recorder.record(event)
    }

    /// Takes the times of a turn. Later events of that turn are dropped.
    pub(crate) fn take(&self, session: &SessionId, turn: u64) -> BatchTimes {
        self.batches().remove(&(session.clone(), Some(turn))).unwrap_or_default()
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock()
    }

    /// The state changes of breakers so far.
    pub(crate) fn breaker_changes(&self) -> BreakerChanges {
        self.breaker_changes.lock().clone()
    }

    /// How many calls ran at once so far.
    pub(crate) fn at_once(&self) -> AtOnce {
        self.at_once.lock().clone()
    }

    fn record(&self, event: &Event) {
        let place = || (event.session.clone(), event.turn);
        let at = Duration::from_micros(event.mono_us);
        match &event.kind {
            EventKind::TurnStarted { calls } => {
                let streamed = calls.is_none();
                let calls = vec![CallTimes::default(); calls.unwrap_or_default()];
                self.batches().insert(place(), BatchTimes { started: Some(at), streamed, calls });
            }
            EventKind::BreakerTransition { to, .. } => {
                if let Some(of) = BreakerOf::of_event(&event.kind) {
                    self.breaker_changes.lock().add(of, at, *to);
                }
            }
            kind => {
                let mut batches = self.batches();
                if let (Some(batch), Some(index)) = (batches.get_mut(&place()), event.index) {
                    let index = index as usize;
                    if batch.streamed && batch.calls.len() <= index {
                        batch.calls.resize_with(index + 1, CallTimes::default);
                    }
                    if let Some(times) = batch.calls.get_mut(index) {
                        let before = times.running_since();
                        times.record(at, kind);
                        match (before, times.running_since()) {
                            (None, Some(_)) => self.at_once.lock().begin(),
                            (Some(began), None) => self.at_once.lock().end(at.saturating_sub(began)),
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}
