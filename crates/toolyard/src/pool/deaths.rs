//! How often an actor may die.

use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// An actor that dies more often than this ...
const RESTARTS_MAX: usize = 3;
/// ... within this time is given up, and its engine with it (RA-5).
const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// The last deaths of an actor.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    at: VecDeque<Instant>,
}

impl Deaths {
    /// Notes a death; says whether it is one too many.
    pub(super) fn is_one_too_many(&mut self, now: Instant) -> bool {
        self.at.push_back(now);
        while self.at.front().is_some_and(|at| now.duration_since(*at) > RESTART_WINDOW) {
            self.at.pop_front();
        }
        self.at.len() > RESTARTS_MAX
    }
}
