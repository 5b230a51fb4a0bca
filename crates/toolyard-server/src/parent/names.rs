//! The parent's names for turns, by the engine's.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use toolyard::SessionId;

/// A turn, as the engine knows it.
type Place = (SessionId, u64);

/// The names of the turns that are open. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Mutex<HashMap<Place, Arc<str>>>>);

impl Names {
    pub(super) fn add(&self, session: &SessionId, turn: u64, name: Arc<str>) {
        self.0.lock().insert((session.clone(), turn), name);
    }

    pub(super) fn remove(&self, session: &SessionId, turn: u64) {
        self.0.lock().remove(&(session.clone(), turn));
    }

    /// The parent's name for a turn, if it is one of the parent's.
    pub(super) fn find(&self, session: &SessionId, turn: u64) -> Option<Arc<str>> {
        self.0.lock().get(&(session.clone(), turn)).cloned()
    }
}
