//! The right to run one call; given back on drop.

use super::{Admission, EntryId, Held, Need, UnitKind};
use std::sync::Arc;

/// What is to be done with what a permit holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is given back on drop.
    Live,
    /// Its handler was given up and still runs: given back on drop, which is when the handler has stopped.
    Zombie,
    /// Its handler has dispatched calls of its own: somebody else gives it back.
    HandedOver,
}

/// Everything one running call holds. Dropping it gives all of it back and starts whoever can go now, so a
/// panic, a timeout and an aborted task leak nothing.
#[must_use = "a permit that is dropped is given back"]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    pub(super) need: Need,
    /// Its place on its lease, if it is serial.
    pub(super) entry: Option<EntryId>,
    state: State,
}

impl Permit {
    /// The table has granted `need`.
    pub(super) fn new(admission: Arc<Admission>, need: Need, entry: Option<EntryId>) -> Self {
        Self { admission, need, entry, state: State::Live }
    }

    /// The handler was given up and still runs: gives back what it need not go on holding (SC-6).
    pub(crate) fn become_zombie(&mut self, keeps: impl Fn(UnitKind) -> bool) {
        let (Held { need, .. }, granted) = self.admission.become_zombie(self.held(), keeps);
        (self.need, self.state) = (need, State::Zombie);
        granted.start();
    }

    /// Leaves what it holds to the nest of its call, which knows what of it is held at this moment.
    pub(crate) fn hand_over(mut self) {
        self.state = State::HandedOver;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Self { need, entry, state, .. } = *self;
        match state {
            State::HandedOver => {}
            State::Live => self.admission.change(|table, now| table.finish(need, entry, now)),
            State::Zombie => self.admission.change(|table, now| {
                table.zombie_ended(need, entry, now);
                if let Some(entry) = entry {
                    table.quiet(entry, now);
                }
            }),
        }
    }
}
