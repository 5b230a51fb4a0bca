//! From when on a question counts as shown.

use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Where a question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody said: it counts as shown since it was asked.
    Asked,
    /// It waits to be shown.
    Held,
    /// It is shown.
    Shown,
}

/// Whether a question is shown. Its time counts from then (PO-4).
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
    /// How long a question may wait to be shown.
    pub const HELD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// It is not shown yet: others come first. Without effect once it is.
    pub fn hold(&self) {
        self.go(Stage::Asked, Stage::Held);
    }

    /// It is shown now, and its time begins. Only the first word of this counts.
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

    /// Waits until it has been shown for so long; `sleep` waits for a time.
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
                moved = stage.changed() => moved.expect("this is one of its senders"),
                () = sleep(time) => return,
            }
        }
    }
}
