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
        self.go(Stage::Asked, Stage::Held);
    }

    /// Marks the question as shown, which starts its time. Only the first call counts.
    pub fn shown(&self) {
        if !self.go(Stage::Held, Stage::Shown) {
            self.go(Stage::Asked, Stage::Shown);
        }
    }

    fn go(&self, from: Stage, to: Stage) -> bool {
        self.stage.send_if_modified(|stage| {
            let goes = *stage == from;
            if goes {
                *stage = to;
            }
            goes
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
                moved = stage.changed() => moved.expect("the sender is alive"),
                () = sleep(time) => return,
            }
        }
    }
}
