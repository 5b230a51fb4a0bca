//! Counts the calls of a turn that have ended.

use tokio::sync::watch;
use toolyard::{Event, EventKind};

/// The number of calls that have ended in the turn that started last.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedCalls {
    count: watch::Sender<usize>,
}

impl EndedCalls {
    /// The event sink that counts.
    pub(super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let count = self.count.clone();
        move |event| match &event.kind {
            EventKind::TurnStarted { .. } => count.send_modify(|count| *count = 0),
            kind if kind.is_terminal() => count.send_modify(|count| *count += 1),
            _ => {}
        }
    }

    /// Waits until this many calls have ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn until(&self, calls: usize) {
        let mut count = self.count.subscribe();
        let reached = count.wait_for(|count| *count >= calls).await;
        reached.map(drop).expect("the sender is in `self`");
    }
}
