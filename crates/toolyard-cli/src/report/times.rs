//! When calls started and ended, as events tell it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolyard::{Event, EventKind, SessionId};

/// The times of one batch, since the engine was built.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchTimes {
    /// When it came in.
    pub(crate) begun: Duration,
    /// By the calls' places.
    pub(crate) calls: Vec<CallTimes>,
}

/// The times of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallTimes {
    /// When it had its permits.
    pub(crate) called: Option<Duration>,
    /// When its result was there.
    pub(crate) ended: Option<Duration>,
}

/// Listens to events and keeps the times of batches until they are fetched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    batches: Arc<Mutex<Batches>>,
}

/// By session and turn.
type Batches = HashMap<(SessionId, Option<u64>), BatchTimes>;

impl Recorder {
    /// What listens for it.
    pub(crate) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let recorder = self.clone();
        move |event| recorder.see(event)
    }

    /// Fetches the times of a turn; what comes in late is not kept.
    pub(crate) fn take(&self, session: &SessionId, turn: u64) -> BatchTimes {
        self.batches().remove(&(session.clone(), Some(turn))).unwrap_or_default()
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, event: &Event) {
        let place = || (event.session.clone(), event.turn);
        let at = Duration::from_micros(event.mono_us);
        if let EventKind::TurnStarted { calls: Some(calls) } = event.kind {
            let times = BatchTimes { begun: at, calls: vec![CallTimes::default(); calls] };
            self.batches().insert(place(), times);
            return;
        }
        let is_called = matches!(event.kind, EventKind::Called { .. });
        if !is_called && !event.kind.is_terminal() {
            return;
        }
        let mut batches = self.batches();
        let times = batches.get_mut(&place()).and_then(|batch| batch.calls.get_mut(event.index? as usize));
        if let Some(times) = times {
            let time = if is_called { &mut times.called } else { &mut times.ended };
            *time = Some(at);
        }
    }
}
