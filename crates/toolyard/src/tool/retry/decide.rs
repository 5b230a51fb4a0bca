//! Whether a failed attempt is retried (RT-1, RT-3, RT-4, RT-5, RT-7).

use super::{Bucket, Paid};
use std::{num::NonZeroU32, time::Duration};
use tokio::time::Instant;
use toolyard_core::{Effect, ErrorKind, RetryPolicy, RetryStopped};

/// The longest wait that a server may ask of the engine (RT-3).
const HINT_WAIT_MAX: Duration = Duration::from_secs(30);

/// The least time in which an attempt is worth starting (RT-4).
const MIN_ATTEMPT: Duration = Duration::from_millis(50);

/// The attempt that ended, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) kind: ErrorKind,
    pub(crate) effect: Effect,
    /// Whether the handler itself declared that it changed nothing.
    pub(crate) no_side_effect: bool,
    /// When the remote says to try again.
    pub(crate) hint: Option<Duration>,
    /// The number of the attempt, from 1.
    pub(crate) attempt: u32,
}

/// Whether the call may run more than once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeatability {
    /// The tool only reads, or is idempotent.
    pub(crate) repeatable: bool,
    /// The tool spawns sub-agents.
    pub(crate) recursive: bool,
    /// The call has dispatched calls of its own, in any attempt.
    pub(crate) has_dispatched: bool,
}

/// The time available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) now: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) attempt_timeout: Duration,
}

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Another attempt, after a wait.
    Retry { delay: Duration, paid: Paid },
    /// No retry: the call ends with this failure. Says why, if the failure could have been retried.
    Stop(Option<RetryStopped>),
}

/// Decides what follows a failed attempt, and pays for the retry if there is one. `chance` is in `0.0..1.0`.
pub(crate) fn decide(
    ended: &Ended,
    call: Repeatability,
    span: Span,
    policy: &RetryPolicy,
    bucket: &Bucket,
    chance: f64,
) -> Decision {
    // A tool with retries turned off has not run out of them, so there is no reason to report.
    if policy.max_attempts() == NonZeroU32::MIN || !call.may_repeat(ended) {
        return Decision::Stop(None);
    }
    let wait = if ended.attempt < policy.max_attempts().get() {
        span.wait(policy.delay(ended.attempt, chance), ended.hint)
    } else {
        Err(RetryStopped::Attempts)
    };
    // Paid last, so that a stop for another reason costs nothing.
    let paid = wait.and_then(|delay| Ok((delay, bucket.pay(ended.kind).ok_or(RetryStopped::Budget)?)));
    match paid {
        Ok((delay, paid)) => Decision::Retry { delay, paid },
        Err(why) => Decision::Stop(Some(why)),
    }
}

impl Repeatability {
    /// RT-1, RT-7.
    fn may_repeat(self, ended: &Ended) -> bool {
        // Only one layer retries: what this call dispatched has been retried already.
        if self.recursive || self.has_dispatched {
            return false;
        }
        match ended.kind {
            ErrorKind::Transient => self.repeatable || ended.no_side_effect,
            // The engine's own limit has been waited for already; only a remote's answer counts as an attempt.
            ErrorKind::RateLimited => self.repeatable && ended.effect != Effect::NotStarted,
            ErrorKind::Timeout => self.repeatable,
            _ => false,
        }
    }
}

impl Span {
    /// The wait before the next attempt, if there is time for both (RT-3, RT-4).
    fn wait(self, delay: Duration, hint: Option<Duration>) -> Result<Duration, RetryStopped> {
        if hint.is_some_and(|hint| hint > HINT_WAIT_MAX) {
            return Err(RetryStopped::Hint);
        }
        if !self.has_time_after(delay) {
            return Err(RetryStopped::Deadline);
        }
        match hint {
            Some(hint) if hint > delay && !self.has_time_after(hint) => Err(RetryStopped::Hint),
            hint => Ok(hint.map_or(delay, |hint| hint.max(delay))),
        }
    }

    fn has_time_after(self, delay: Duration) -> bool {
        let needed = delay.saturating_add(MIN_ATTEMPT.max(self.attempt_timeout / 10));
        self.deadline.is_none_or(|deadline| self.now.checked_add(needed).is_some_and(|end| end <= deadline))
    }
}
