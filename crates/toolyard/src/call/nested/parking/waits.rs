//! What dispatches wait for: the handler's units, or the calls of dispatches that were dropped.

use super::{
    Parking,
    state::{HandlerState, Units},
};

impl Parking {
    /// Whether the calls of all dropped dispatches have settled (CC-6b).
    pub(crate) fn dropped_have_settled(&self) -> bool {
        self.state().dropped_have_settled()
    }

    /// Waits until [`Self::dropped_have_settled`].
    pub(crate) async fn until_dropped_settled(&self) {
        self.until(HandlerState::dropped_have_settled).await;
    }

    /// Waits until the handler has its units again. A handler that is over and cannot be dropped stays parked until its
    /// calls have stopped: it must not run on beside a serial one (CC-7).
    pub(crate) async fn until_held(&self) {
        let holds = |state: &HandlerState| matches!(state.units, Units::Held) && state.unsettled == 0;
        let is_over = |state: &HandlerState| matches!(state.units, Units::Over) && state.children.is_empty();
        self.until(|state| holds(state) || is_over(state)).await;
    }

    /// Waits as above after a dispatch that was refused, because the handler is over. If it has stopped, nothing of it
    /// goes on, and whoever else dispatched for it waits for nobody.
    pub(crate) async fn until_held_or_stopped(&self) {
        let has_stopped = self.state().stopped;
        if !has_stopped {
            self.until_held().await;
        }
    }

    /// Waits until [`Self::dropped_have_settled`], unless the calls that wait are stopped meanwhile.
    pub(crate) async fn until_dropped_settled_or(&self, are_stopped: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified(); // as below
            if are_stopped() || self.dropped_have_settled() {
                return;
            }
            changed.await;
        }
    }

    async fn until(&self, is_so: impl Fn(&HandlerState) -> bool) {
        loop {
            // Made before the check, so that no change is missed in between.
            let changed = self.changed.notified();
            if is_so(&self.state()) {
                return;
            }
            changed.await;
        }
    }
}
