//! Answers that are good for more than one call, and the questions that wait for one (PO-3, PO-4).
//!
//! ```text
//!   question asked ──► waits under its pattern ──────────┐ settled with it, each by itself
//!   "always", or the answer of prompt_once ──► remembered ┘──► later calls of the pattern are not asked about
//! ```

use foldhash::{HashMap, HashMapExt};
use slab::Slab;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::oneshot;
use toolyard_core::CallDigest;

/// Patterns that are remembered in one session tree. Over it an answer is for its call alone.
const REMEMBERED_MAX: usize = 10_000;

/// An answer for all calls of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// They may run.
    Allowed,
    /// They may not.
    Refused,
}

/// The answers and questions of one session tree.
#[derive(Default)]
pub(crate) struct Approvals {
    /// Whether anything is remembered: most sessions have nothing to look up.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    remembered: Option<HashMap<CallDigest, Remembered>>,
    /// Who waits under a pattern.
    waiting: Slab<(CallDigest, oneshot::Sender<Remembered>)>,
}

/// A question that waits for an answer to any question of its pattern. Dropping it ends that.
pub(crate) struct Waiting {
    approvals: Arc<Approvals>,
    place: Option<usize>,
    settled: oneshot::Receiver<Remembered>,
}

impl Approvals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of a pattern.
    pub(crate) fn remembered(&self, pattern: impl FnOnce() -> CallDigest) -> Option<Remembered> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.state().remembered.as_ref()?.get(&pattern()).copied()
    }

    /// Waits under a pattern; one that has been answered meanwhile is settled at once.
    pub(crate) fn wait(self: &Arc<Self>, pattern: CallDigest) -> Waiting {
        let (settle, settled) = oneshot::channel();
        let mut state = self.state();
        let place = match state.remembered.as_ref().and_then(|known| known.get(&pattern)) {
            Some(answer) => {
                let _received_below = settle.send(*answer);
                None
            }
            None => Some(state.waiting.insert((pattern, settle))),
        };
        drop(state);
        Waiting { approvals: self.clone(), place, settled }
    }

    /// Remembers an answer, and settles all who wait under its pattern.
    pub(crate) fn remember(&self, pattern: CallDigest, answer: Remembered) {
        let mut state = self.state();
        let known = state.remembered.get_or_insert_with(HashMap::new);
        if known.len() < REMEMBERED_MAX || known.contains_key(&pattern) {
            known.insert(pattern, answer);
            self.any.store(true, Ordering::Release);
        } else {
            tracing::warn!("too many answers are remembered; this one is for the calls of the moment alone");
        }
        let places: Vec<usize> =
            state.waiting.iter().filter(|(_, (of, _))| *of == pattern).map(|(place, _)| place).collect();
        for place in places {
            let (_, settle) = state.waiting.remove(place);
            // One whose call has ended does not wait any more.
            let _ = settle.send(answer);
        }
    }

    /// Forgets every answer: calls are asked about again.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.remembered = None;
        // With the state, so that an answer of this moment is not passed over.
        self.any.store(false, Ordering::Release);
    }
}

impl Waiting {
    /// The answer to another question of the pattern.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn settled(&mut self) -> Remembered {
        match (&mut self.settled).await {
            Ok(answer) => {
                self.place = None;
                answer
            }
            // Who would settle it is gone: it goes on by itself.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.approvals.state();
        // Settled meanwhile, its place may be another's.
        if self.settled.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            state.waiting.remove(place);
        }
    }
}
