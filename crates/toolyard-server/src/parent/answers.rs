//! Where the answers of turns go.

use super::{out::Out, tell, turns::Turns};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use toolyard::Outcome;

/// Tells the parent what has come of its calls. Cheap to clone.
#[derive(Clone)]
pub(super) struct Answers {
    pub(super) out: Out,
    pub(super) turns: Turns,
    /// Whether answers have `meta`.
    pub(super) meta: Arc<AtomicBool>,
    pub(super) tasks: TaskTracker,
    /// Where tasks run: batches may be dropped elsewhere.
    pub(super) runtime: Handle,
}

impl Answers {
    /// Tells of one call, by its place in its turn.
    pub(super) async fn one(&self, turn: &str, index: usize, outcome: &Outcome) {
        let _ = self.out.tell(tell::response(turn, index, outcome, self.meta.load(Ordering::Relaxed))).await; // a parent that has gone hears nothing
    }

    /// Tells of the end of a turn, whose name may be used again from then on.
    /// What else ends with it has done so before the parent can read of it.
    pub(super) async fn end(&self, turn: &str, ended: Vec<u8>, finish: impl FnOnce()) {
        let room = self.out.room(&ended).await;
        self.turns.ended(turn, || {
            finish();
            if let Ok(room) = room {
                let _ = self.out.put(ended, Some(room)); // a parent that has gone hears nothing
            }
        });
    }

    /// Tells of calls of a turn, by their places, and of the end of all of them, in a task.
    pub(super) fn rest(&self, turn: Arc<str>, number: u64, outcomes: Vec<Outcome>, told: Vec<bool>) {
        let answers = self.clone();
        let telling = async move {
            for (index, outcome) in outcomes.iter().enumerate().filter(|(index, _)| !told[*index]) {
                answers.one(&turn, index, outcome).await;
            }
            answers.end(&turn, tell::turn_ended(&turn, number, &outcomes, None), || {}).await;
        };
        drop(self.runtime.spawn(self.tasks.track_future(telling)));
    }
}
