//! Counts an actor's deaths against the limit for restarts.

use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// How often an actor is restarted within [`RESTART_WINDOW`]. With one more death it is given up, and its engine too
/// (RA-5).
const RESTARTS_MAX: usize = 3;
/// The window in which deaths are counted.
const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// The recent deaths of an actor.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    at: VecDeque<Instant>,
}

impl Deaths {
    /// Records a death. Returns whether it is one too many.
    pub(super) fn exceeds_limit(&mut self, now: Instant) -> bool {
        self.at.push_back(now);
        while self.at.front().is_some_and(|at| now.duration_since(*at) > RESTART_WINDOW) {
            self.at.pop_front();
        }
        self.at.len() > RESTARTS_MAX
    }
}
