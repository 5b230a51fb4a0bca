//! Remembered answers, which hold for more than one call, and the questions that wait for one (PO-3, PO-4).
//!
//! ```text
//!   question asked ──► waits under its pattern ──────────┐ each is settled by the remembered answer
//!   "always", "never", or prompt_once ────────► remembered ┘──► later calls of the pattern need no question
//! ```

use foldhash::{HashMap, HashMapExt};
use parking_lot::Mutex;
use slab::Slab;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::oneshot;
use toolyard_core::{Answer, CallDigest};

/// How many patterns one session tree remembers. Beyond that, an answer holds only for the calls waiting then.
const REMEMBERED_MAX: usize = 10_000;

/// The answers and questions of one session tree.
#[derive(Default)]
pub(crate) struct Approvals {
    /// Whether anything is remembered. Most sessions have nothing to look up.
    any: AtomicBool,
    state: Mutex<ByPattern>,
}

#[derive(Default)]
struct ByPattern {
    remembered: Option<HashMap<CallDigest, Answer>>,
    /// The questions that wait, with their patterns.
    waiting: Slab<(CallDigest, oneshot::Sender<Answer>)>,
}

/// A question that can be settled by the answer to another question of its pattern. Dropping it ends the wait.
pub(crate) struct Waiting {
    approvals: Arc<Approvals>,
    place: Option<usize>,
    settled: oneshot::Receiver<Answer>,
}

impl Approvals {
    /// The remembered answer for a pattern.
    pub(crate) fn remembered(&self, pattern: impl FnOnce() -> CallDigest) -> Option<Answer> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.state.lock().remembered.as_ref()?.get(&pattern()).cloned()
    }

    /// Waits for an answer under a pattern. A pattern that has been answered meanwhile settles it at once.
    pub(crate) fn wait(self: &Arc<Self>, pattern: CallDigest) -> Waiting {
        let (settle, settled) = oneshot::channel();
        let mut state = self.state.lock();
        let place = match state.remembered.as_ref().and_then(|known| known.get(&pattern)) {
            Some(answer) => {
                let _received_below = settle.send(answer.clone());
                None
            }
            None => Some(state.waiting.insert((pattern, settle))),
        };
        drop(state);
        Waiting { approvals: self.clone(), place, settled }
    }

    /// Remembers an answer, and settles all questions that wait under its pattern.
    pub(crate) fn remember(&self, pattern: CallDigest, answer: Answer) {
        let mut state = self.state.lock();
        let known = state.remembered.get_or_insert_with(HashMap::new);
        if known.len() < REMEMBERED_MAX || known.contains_key(&pattern) {
            known.insert(pattern, answer.clone());
            self.any.store(true, Ordering::Release);
        } else {
            tracing::warn!(
                "too many remembered answers; this one applies only to the calls waiting for it now"
            );
        }
        let places: Vec<usize> =
            state.waiting.iter().filter(|(_, (of, _))| *of == pattern).map(|(place, _)| place).collect();
        let settled: Vec<_> = places.into_iter().map(|place| state.waiting.remove(place)).collect();
        drop(state); // an answer wakes the task of its question
        for (_, settle) in settled {
            // Nothing receives the answer if the call has ended.
            let _ = settle.send(answer.clone());
        }
    }

    /// Forgets every answer, so that calls need approval again.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        state.remembered = None;
        // Stored under the lock, so that it cannot hide an answer that is remembered at the same moment.
        self.any.store(false, Ordering::Release);
    }
}

impl Waiting {
    /// Waits for the answer to another question of the pattern.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn settled(&mut self) -> Answer {
        match (&mut self.settled).await {
            Ok(answer) => {
                self.place = None;
                answer
            }
            // Nothing can settle it any more: only its own answer can.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.approvals.state.lock();
        // Once it is settled, another question may have its place.
        let is_open = self.settled.try_recv() == Err(oneshot::error::TryRecvError::Empty);
        let _question = is_open.then(|| state.waiting.remove(place));
        drop(state); // before the question, which wakes this task
    }
}
