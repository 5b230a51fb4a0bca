use super::*;
use std::time::Duration;
use tokio::time::Instant;
use toolyard_core::error::Ran;

/// A call that may be retried, for tests to vary.
struct Case {
    ended: Ended,
    call: Repeatability,
    /// From now.
    deadline: Option<Duration>,
    attempt_timeout: Duration,
    policy: RetryPolicy,
    bucket: Bucket,
}

fn case(kind: ErrorKind) -> Case {
    let effect = if kind.ran() == Ran::No { Effect::NotStarted } else { Effect::Failed };
    Case {
        ended: Ended { kind, effect, no_side_effect: false, hint: None, attempt: 1 },
        call: Repeatability { repeatable: true, recursive: false, has_dispatched: false },
        deadline: None,
        attempt_timeout: 60 * SECOND,
        policy: RetryPolicy::default(),
        bucket: Bucket::new(100),
    }
}

impl Case {
    fn decide(&self) -> Decision {
        let now = Instant::now();
        let deadline = self.deadline.map(|after| now + after);
        let span = Span { now, deadline, attempt_timeout: self.attempt_timeout };
        decide(&self.ended, self.call, span, &self.policy, &self.bucket, 0.0)
    }

    fn check_retry(&self, after: Duration) {
        match self.decide() {
            Decision::Retry { delay, .. } => assert_eq!(delay, after, "{:?}", self.ended),
            stop @ Decision::Stop(_) => panic!("{:?}: {stop:?}", self.ended),
        }
    }

    fn check_stop(&self, why: Option<RetryStopped>) {
        let tokens = self.bucket.tokens();
        assert_eq!(self.decide(), Decision::Stop(why), "{:?} {:?}", self.ended, self.call);
        assert_eq!(self.bucket.tokens(), tokens, "what is not tried again costs nothing");
    }
}

fn set<T>(mut case: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut case);
    case
}

/// RT-1, V4: three kinds of error are retried, for tools that may run twice.
#[test]
fn three_kinds_are_tried_again_and_no_other() {
    let again = [ErrorKind::Transient, ErrorKind::RateLimited, ErrorKind::Timeout];
    for kind in ErrorKind::ALL.iter().copied() {
        if again.contains(&kind) {
            case(kind).check_retry(100 * MILLI);
        } else {
            case(kind).check_stop(None);
            set(case(kind), |case| case.ended.no_side_effect = true).check_stop(None);
        }
    }
}

/// RT-1: a tool that must not run twice is retried only if its handler returned a transient error and declared that
/// it changed nothing.
#[test]
fn a_tool_that_must_not_run_twice_has_to_say_that_it_did_nothing() {
    for kind in ErrorKind::ALL.iter().copied() {
        for no_side_effect in [false, true] {
            let case = set(case(kind), |case| {
                case.call.repeatable = false;
                case.ended.no_side_effect = no_side_effect;
            });
            if kind == ErrorKind::Transient && no_side_effect {
                case.check_retry(100 * MILLI);
            } else {
                case.check_stop(None);
            }
        }
    }
}

/// RT-1, V4: waiting for the engine's own limit is left to the caller; the remote's is retried.
#[test]
fn a_local_rate_limit_is_not_tried_again() {
    set(case(ErrorKind::RateLimited), |case| case.ended.effect = Effect::NotStarted).check_stop(None);
}

/// RT-1, I9: the third attempt is the last.
#[test]
fn attempts_run_out() {
    set(case(ErrorKind::Transient), |case| case.ended.attempt = 2).check_retry(400 * MILLI);
    for attempt in [3, 4, u32::MAX] {
        let case = set(case(ErrorKind::Transient), |case| case.ended.attempt = attempt);
        case.check_stop(Some(RetryStopped::Attempts));
    }
    set(case(ErrorKind::Transient), |case| case.policy = RetryPolicy::NONE).check_stop(None);
}

/// RT-7: one layer retries.
#[test]
fn a_call_that_has_called_others_is_not_tried_again() {
    for kind in [ErrorKind::Transient, ErrorKind::RateLimited, ErrorKind::Timeout] {
        for no_side_effect in [false, true] {
            let case = || set(case(kind), |case| case.ended.no_side_effect = no_side_effect);
            set(case(), |case| case.call.recursive = true).check_stop(None);
            set(case(), |case| case.call.has_dispatched = true).check_stop(None);
        }
    }
}

/// RT-3, T10: the engine waits for a hint of up to 30 s; one of 45 s ends the call.
#[test]
fn a_hint_is_waited_for_within_reason() {
    let hint = |hint| set(case(ErrorKind::RateLimited), |case| case.ended.hint = Some(hint));
    hint(Duration::ZERO).check_retry(100 * MILLI);
    hint(99 * MILLI).check_retry(100 * MILLI);
    hint(2 * SECOND).check_retry(2 * SECOND);
    hint(30 * SECOND).check_retry(30 * SECOND);
    hint(30 * SECOND + MILLI).check_stop(Some(RetryStopped::Hint));
    hint(45 * SECOND).check_stop(Some(RetryStopped::Hint));
    hint(Duration::MAX).check_stop(Some(RetryStopped::Hint));
}

/// RT-3: a hint that does not fit the deadline ends the call; if no delay fits it, the deadline is the reason.
#[test]
fn a_hint_has_to_fit_the_deadline() {
    let case = |deadline| {
        set(case(ErrorKind::Transient), |case| {
            case.ended.hint = Some(2 * SECOND);
            case.deadline = Some(deadline);
        })
    };
    // An attempt with a timeout of 60 s needs at least 6 s.
    case(8 * SECOND).check_retry(2 * SECOND);
    case(8 * SECOND - MILLI).check_stop(Some(RetryStopped::Hint));
    case(6100 * MILLI).check_stop(Some(RetryStopped::Hint));
    case(6099 * MILLI).check_stop(Some(RetryStopped::Deadline));
}

/// RT-4: no wait unless there is time for an attempt after it: a tenth of its timeout, and at least 50 ms.
#[test]
fn a_deadline_leaves_time_for_an_attempt() {
    let case = |timeout, deadline| {
        set(case(ErrorKind::Transient), |case| {
            case.attempt_timeout = timeout;
            case.deadline = Some(deadline);
        })
    };
    case(2 * SECOND, 300 * MILLI).check_retry(100 * MILLI);
    case(2 * SECOND, 299 * MILLI).check_stop(Some(RetryStopped::Deadline));
    case(10 * MILLI, 150 * MILLI).check_retry(100 * MILLI);
    case(10 * MILLI, 149 * MILLI).check_stop(Some(RetryStopped::Deadline));
    case(2 * SECOND, Duration::ZERO).check_stop(Some(RetryStopped::Deadline));
    case(Duration::MAX, 3600 * SECOND).check_stop(Some(RetryStopped::Deadline));
}

/// RT-5, T18: after ten failed retries, the next failure is final.
#[test]
fn an_empty_bucket_ends_retries() {
    let case = set(case(ErrorKind::Transient), |case| {
        case.policy = case.policy.with_max_attempts(u32::MAX);
    });
    (0..10).for_each(|_| case.check_retry(100 * MILLI));
    case.check_stop(Some(RetryStopped::Budget));
    (0..10).for_each(|_| case.bucket.first_success());
    case.check_retry(100 * MILLI);
    case.check_stop(Some(RetryStopped::Budget));
}

/// RT-5: the bucket is asked last, so that a stop for another reason costs nothing.
#[test]
fn an_empty_bucket_hides_no_other_reason() {
    let empty = || {
        let case = case(ErrorKind::Timeout);
        (0..5).for_each(|_| case.check_retry(100 * MILLI));
        assert_eq!(case.bucket.tokens(), 0);
        case
    };
    empty().check_stop(Some(RetryStopped::Budget));
    set(empty(), |case| case.ended.attempt = 3).check_stop(Some(RetryStopped::Attempts));
    set(empty(), |case| case.ended.hint = Some(45 * SECOND)).check_stop(Some(RetryStopped::Hint));
    set(empty(), |case| case.deadline = Some(SECOND)).check_stop(Some(RetryStopped::Deadline));
}
