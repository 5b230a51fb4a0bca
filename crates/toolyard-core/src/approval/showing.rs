//! When a question counts as shown.

use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::watch;

/// The stage of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not reported yet: the question counts as shown since it was asked.
    Asked,
    /// The question waits to be shown.
    Held,
    /// The question is shown.
    Shown,
}

/// Tracks whether a question is shown. Its time counts from then (PO-4).
#[derive(Debug, Clone)]
pub struct Showing {
    stage: Arc<watch::Sender<Stage>>,
}

impl Default for Showing {
    fn default() -> Self {
        Self { stage: Arc::new(watch::Sender::new(Stage::Asked)) }
    }
}

impl Showing {
    /// How long a question may be held before it expires.
    pub const HELD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Marks the question as not shown yet, because others come first. Has no effect once it is shown.
    pub fn hold(&self) {
        self.transition(Stage::Asked, Stage::Held);
    }

    /// Marks the question as shown, which starts its time. Only the first call counts.
    pub fn shown(&self) {
        if !self.transition(Stage::Held, Stage::Shown) {
            self.transition(Stage::Asked, Stage::Shown);
        }
    }

    fn transition(&self, from: Stage, to: Stage) -> bool {
        self.stage.send_if_modified(|stage| {
            let applies = *stage == from;
            if applies {
                *stage = to;
            }
            applies
        })
    }

    /// Waits until the question has been shown for `within`. `sleep` provides the timer.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn over<S: Future<Output = ()>>(&self, within: Duration, sleep: impl Fn(Duration) -> S) {
        let mut stage = self.stage.subscribe();
        loop {
            let now = *stage.borrow_and_update();
            let time = if now == Stage::Held { Self::HELD_MAX } else { within };
            tokio::select! {
                biased;
                changed = stage.changed() => changed.expect("the sender is alive"),
                () = sleep(time) => return,
            }
        }
    }
}
