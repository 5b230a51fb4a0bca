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
    /// Whether its calls came one by one.
    pub(crate) streamed: bool,
    /// By the calls' places.
    pub(crate) calls: Vec<CallTimes>,
}

/// The times of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallTimes {
    /// When it came in.
    pub(crate) came: Option<Duration>,
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
        let field: fn(&mut CallTimes) -> &mut Option<Duration> = match event.kind {
            EventKind::TurnStarted { calls } => {
                let streamed = calls.is_none();
                let calls = vec![CallTimes::default(); calls.unwrap_or_default()];
                self.batches().insert(place(), BatchTimes { begun: at, streamed, calls });
                return;
            }
            EventKind::Received { .. } => |times| &mut times.came,
            EventKind::Called { .. } => |times| &mut times.called,
            ref kind if kind.is_terminal() => |times| &mut times.ended,
            _ => return,
        };
        let mut batches = self.batches();
        if let (Some(batch), Some(index)) = (batches.get_mut(&place()), event.index) {
            let index = index as usize;
            if batch.streamed && batch.calls.len() <= index {
                batch.calls.resize_with(index + 1, CallTimes::default);
            }
            if let Some(times) = batch.calls.get_mut(index) {
                *field(times) = Some(at);
            }
        }
    }
}
