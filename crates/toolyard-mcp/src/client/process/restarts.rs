//! Decides when a server that died is restarted: a pure count, without a clock.
//!
//! ```text
//!   starting ─► ready ─► down ─► starting …        ready for a while: earlier deaths are forgiven
//!      └──────────────────┴─ too often in a row ─► given up
//! ```

use std::time::Duration;

/// The wait before the first restart.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait before a restart.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The number of deaths in a row after which a server is given up.
const DEATHS_MAX: u32 = 6;

/// How long a server must have been ready for its earlier deaths to be forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// What to do after a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start it again after this wait.
    Restart(Duration),
    /// Give it up.
    GiveUp,
}

/// Counts the deaths of a server in a row.
#[derive(Debug, Default)]
pub(crate) struct RestartPolicy {
    deaths: u32,
}

impl RestartPolicy {
    /// Counts a death; `ready_for` is how long the server was ready, if it was.
    pub(crate) fn died(&mut self, ready_for: Option<Duration>) -> Next {
        if ready_for.is_some_and(|time| time >= FORGIVEN_AFTER) {
            self.deaths = 0;
        }
        self.deaths += 1;
        if self.deaths >= DEATHS_MAX {
            return Next::GiveUp;
        }
        let wait = FIRST_WAIT.saturating_mul(4u32.saturating_pow(self.deaths - 1));
        Next::Restart(wait.min(WAIT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let mut policy = RestartPolicy::default();
        let waits: Vec<_> = (0..6).map(|_| policy.died(Some(Duration::from_secs(1)))).collect();
        let ms = |ms| Next::Restart(Duration::from_millis(ms));
        assert_eq!(waits, [ms(250), ms(1000), ms(4000), ms(16_000), ms(30_000), Next::GiveUp]);
    }

    #[test]
    fn who_was_ready_for_a_while_is_forgiven() {
        let mut policy = RestartPolicy::default();
        for _ in 0..100 {
            assert_eq!(policy.died(Some(FORGIVEN_AFTER)), Next::Restart(FIRST_WAIT));
        }
        assert_eq!(policy.died(None), Next::Restart(FIRST_WAIT * 4));
    }
}
