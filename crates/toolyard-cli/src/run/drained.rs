//! Tells when a drained engine starts no further call.

use tokio::sync::watch;
use toolyard::{Event, EventKind, event::DrainStep};

/// Whether a drain has come so far that every batch, also a later one, is answered without running.
#[derive(Debug, Clone, Default)]
pub(super) struct Drained {
    is_drained: watch::Sender<bool>,
}

impl Drained {
    /// The event sink that sees it.
    pub(super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let is_drained = self.is_drained.clone();
        move |event| {
            // The steps before it refuse what is new and end what waits.
            if matches!(event.kind, EventKind::EngineDrain { step: DrainStep::Finish }) {
                is_drained.send_replace(true);
            }
        }
    }

    /// Waits until it is so.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn until(&self) {
        let mut is_drained = self.is_drained.subscribe();
        let reached = is_drained.wait_for(|is_drained| *is_drained).await;
        reached.map(drop).expect("the sender is in `self`");
    }
}
