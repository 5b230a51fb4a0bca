//! Output that comes before its call has ended, for the agents that want it (AG-2).

use dashmap::DashMap;
use std::{future::pending, sync::Arc};
use tokio::sync::mpsc;
use toolyard::{AgentPath, CallId, Event, EventKind, EventSink, Session, SessionId};

/// How many pieces wait for an agent. Those beyond are left out: its results have all of them again.
const WAITING_MAX: usize = 256;

type Place = (SessionId, AgentPath);

/// Who follows whose calls. A sink of the engine's events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deltas(Arc<DashMap<Place, mpsc::Sender<(CallId, String)>>>);

impl Deltas {
    /// Follows the calls of an agent.
    pub(crate) fn follow(&self, session: &Session) -> Following {
        let place = (session.id().clone(), session.agent().clone());
        let (tell, told) = mpsc::channel(WAITING_MAX);
        self.0.insert(place.clone(), tell);
        Following { deltas: self.clone(), place, told }
    }
}

impl EventSink for Deltas {
    fn accept(&self, event: &Event) {
        let EventKind::OutputDelta { text } = &event.kind else { return };
        if self.0.is_empty() {
            return;
        }
        let Some(id) = &event.call_id else { return };
        if let Some(follower) = self.0.get(&(event.session.clone(), event.agent.clone())) {
            let _ = follower.try_send((id.clone(), text.clone())); // one that does not fit is left out
        }
    }
}

/// Follows until it is dropped.
pub(crate) struct Following {
    deltas: Deltas,
    place: Place,
    told: mpsc::Receiver<(CallId, String)>,
}

impl Following {
    /// Waits for the next piece.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> (CallId, String) {
        match self.told.recv().await {
            Some(piece) => piece,
            None => pending().await,
        }
    }
}

impl Following {
    /// The next piece, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<(CallId, String)> {
        self.told.try_recv().ok()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Another agent of this name may follow by now, which has not closed its end.
        self.told.close();
        self.deltas.0.remove_if(&self.place, |_, follower| follower.is_closed());
    }
}
