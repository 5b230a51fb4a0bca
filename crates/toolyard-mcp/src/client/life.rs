//! When a server that died is started again: a pure count, without a clock.
//!
//! ```text
//!   starting ─► ready ─► down ─► starting …        ready for a while: all is forgiven
//!      └──────────────────┴─ too often in a row ─► given up
//! ```

use std::time::Duration;

/// The wait before the first restart.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How often a server may die in a row.
const DEATHS_MAX: u32 = 6;

/// How long a server must have been ready for its earlier deaths to be forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// What is done after a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Start it again after this wait.
    Restart(Duration),
    /// Leave it.
    GiveUp,
}

/// The deaths of a server, in a row.
#[derive(Debug, Default)]
pub(super) struct Life {
    deaths: u32,
}

impl Life {
    /// It died, having been ready for so long, if it was at all.
    pub(super) fn died(&mut self, ready_for: Option<Duration>) -> Next {
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
        let mut life = Life::default();
        let waits: Vec<_> = (0..6).map(|_| life.died(Some(Duration::from_secs(1)))).collect();
        let ms = |ms| Next::Restart(Duration::from_millis(ms));
        assert_eq!(waits, [ms(250), ms(1000), ms(4000), ms(16_000), ms(30_000), Next::GiveUp]);
    }

    #[test]
    fn who_was_ready_for_a_while_is_forgiven() {
        let mut life = Life::default();
        for _ in 0..100 {
            assert_eq!(life.died(Some(FORGIVEN_AFTER)), Next::Restart(FIRST_WAIT));
        }
        assert_eq!(life.died(None), Next::Restart(FIRST_WAIT * 4));
    }
}
