//! Every error of a call that does not run, or does not run again.
//!
//! What the gate refuses before that, with its advice, is in [`gate`](crate::gate); what a handler ends with is in
//! `attempt/classify.rs`.

use crate::{budget::Spent, call::stop::Stop};
use std::time::Duration;
use toolyard_core::{CallError, Effect, ErrorKind, Reason, ToolClass, wording};

/// Why a call does not run.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    /// Its batch was stopped (SC-4).
    Stopped(Stop),
    /// An abandoned handler that still runs blocks it: that of an earlier run, or one that keeps what it is queued for
    /// (V3, CL-3).
    BehindZombie,
    /// The pool of its class was given up (RA-5).
    PoolFailed(ToolClass),
    /// So many calls are waiting already (CC-4).
    QueueFull { queue_max: usize },
    /// It needs a serial lease that another call holds, below a call that holds one itself (CC-8).
    SerialNesting,
    /// It has waited for permits or a token this long (V3).
    QueueTimeout(Duration),
    /// Its deadline passed (V3).
    PastDeadline,
    /// Its tool has no rate token, and none within the time that a call may wait for one.
    RateLimited { retry_after: Duration },
    /// A call with its key is in flight, and its tool does not let it join (ID-3).
    KeyInProgress,
    /// The same, where joining could mean waiting for itself (ID-3a).
    WouldDeadlock,
    /// Its session keeps as many keys as it may.
    KeysFull,
    /// A budget does not cover it (RT-11).
    BudgetSpent(Spent),
    /// Events are written too slowly (OB-3).
    SinksFull,
    /// Events cannot be written at all (OB-3).
    SinksBroken,
    /// That it starts could not be recorded (SM-4).
    Unrecorded,
    /// The same, within the time that a call waits for it.
    RecordLate,
    /// Results hold as much memory as they may.
    ResultsFull { whose: &'static str, max: usize },
    /// The policy changed after it was approved (V1).
    ChangedSinceApproval,
    /// What it may do changed twice while it waited: by the policy, or by an edit that has another grant (V1, SM-5).
    ChangedTwice,
    /// The policy changed what it may do while its start was recorded (SM-4).
    ChangedAtStart,
    /// Its question ended with a panic of the approver.
    ApproverPanicked,
    /// Nobody answered its question in time.
    NotApproved,
    /// The person who was asked changed its arguments to what may not run, again and again.
    EditsRefused,
    /// No thread took its handler up within its timeout.
    NoThread(Duration),
}

impl Refusal {
    /// The error that its caller is told.
    #[cold]
    pub(crate) fn error(self) -> CallError {
        match self {
            Self::Stopped(why) => stopped(why),
            Self::BehindZombie => new(
                ErrorKind::QueueTimeout,
                "an earlier call was abandoned but is still running and blocks this one",
            )
            .with_reason(Reason::Zombie),
            Self::PoolFailed(class) => new(ErrorKind::Internal, format!("the {class} pool has failed")),
            Self::QueueFull { queue_max } => new(
                ErrorKind::Overloaded,
                format!("the queue is full: {queue_max} calls are already waiting"),
            ),
            Self::SerialNesting => new(
                ErrorKind::SerialNesting,
                "the call needs a serial scope that is in use while a call above it holds another one",
            ),
            Self::QueueTimeout(limit) => {
                let limit = wording::Span(limit);
                new(ErrorKind::QueueTimeout, format!("the call was queued for {limit} and timed out"))
            }
            Self::PastDeadline => {
                new(ErrorKind::DeadlineExceeded, "the call's deadline passed before it could start")
            }
            Self::RateLimited { retry_after } => rate_limited(retry_after),
            Self::KeyInProgress => key_in_progress(),
            Self::WouldDeadlock => key_in_progress().with_reason(Reason::WouldDeadlock),
            Self::KeysFull => {
                new(ErrorKind::Overloaded, "the session has reached its limit of idempotency keys")
            }
            Self::BudgetSpent(spent) => new(ErrorKind::BudgetExceeded, spent.to_string()),
            Self::SinksFull => {
                sink("events are not being written fast enough, and no call may run unrecorded")
            }
            Self::SinksBroken => {
                sink("events cannot be written, and no call with side effects may run unrecorded")
            }
            Self::Unrecorded => {
                journal("this call could not be recorded, and no such call may run unrecorded")
            }
            Self::RecordLate => {
                journal("this call could not be recorded in time, and no such call may run unrecorded")
            }
            Self::ResultsFull { whose, max } => results_full(whose, max),
            Self::ChangedSinceApproval => changed("The policy changed after this call was approved."),
            Self::ChangedTwice => changed("What this call may do changed twice while it was waiting."),
            Self::ChangedAtStart => {
                changed("The policy changed what this call may do when it was about to start.")
            }
            Self::ApproverPanicked => new(ErrorKind::Internal, "the approver panicked"),
            Self::NotApproved => {
                new(ErrorKind::ConfirmationTimeout, "Nobody approved this operation in time.")
            }
            Self::EditsRefused => new(ErrorKind::UserDenied, wording::EDITS_REFUSED)
                .with_advice("Nothing was done. Do not repeat this call; say what you need."),
            Self::NoThread(limit) => {
                let limit = wording::Span(limit);
                new(ErrorKind::QueueTimeout, format!("no thread was free for the call within {limit}"))
            }
        }
    }

    /// The same, boxed.
    #[cold]
    pub(crate) fn boxed(self) -> Box<CallError> {
        Box::new(self.error())
    }
}

impl Stop {
    /// The error of the calls that have not started.
    pub(crate) fn error(self) -> CallError {
        Refusal::Stopped(self).error()
    }
}

impl From<toolyard_admission::Refusal> for Refusal {
    fn from(refusal: toolyard_admission::Refusal) -> Self {
        match refusal {
            toolyard_admission::Refusal::QueueFull { queue_max } => Self::QueueFull { queue_max },
            toolyard_admission::Refusal::SerialNesting => Self::SerialNesting,
        }
    }
}

/// The error of a call whose task was dropped because its runtime was shut down (SC-3).
pub(crate) fn vanished_error(attempts: u32) -> CallError {
    let mut error = new(ErrorKind::Internal, "the call's task was dropped before it ended");
    error.set_effect(Effect::Unknown);
    error.after_attempts(attempts)
}

/// The error of a call that an earlier life of the engine has started so often, and of which nobody knows what became of
/// it (JR-5).
pub(crate) fn interrupted_error(attempts: u32) -> CallError {
    let message = "the engine's process ended while this call was running: nobody knows what it has done";
    let mut error = new(ErrorKind::Interrupted, message);
    error.set_effect(Effect::Unknown);
    error.after_attempts(attempts)
}

/// The error of a call that was cancelled while it ran, and whose end no life of the engine has seen.
pub(crate) fn cancelled_before_error(attempts: u32) -> CallError {
    let message = "the call was cancelled, and the engine's process ended before the call did";
    let mut error = new(ErrorKind::Cancelled, message);
    error.set_effect(Effect::Unknown);
    error.after_attempts(attempts)
}

/// The error of a call that would have waited for one that was interrupted (JR-8).
pub(crate) fn predecessor_unknown_error() -> CallError {
    let message = "nobody knows what an earlier call of this batch has done, so this one was not started";
    new(ErrorKind::Cancelled, message)
        .with_reason(Reason::PredecessorUnknown)
        .with_advice("Find out what that call has done, then send this one again if it is still needed.")
}

fn new(kind: ErrorKind, message: impl Into<String>) -> CallError {
    CallError::new(kind, message)
}

fn stopped(why: Stop) -> CallError {
    match why {
        Stop::Cancelled => new(ErrorKind::Cancelled, "the call was cancelled before it started"),
        Stop::ShuttingDown => new(ErrorKind::ShuttingDown, "the engine is shutting down"),
        Stop::Failed => new(ErrorKind::Internal, "the engine has failed and runs no further calls"),
        Stop::Zombie => Refusal::BehindZombie.error(),
        Stop::Orphaned => new(ErrorKind::Cancelled, "the call that dispatched this one has ended"),
        Stop::TooManyParked => new(
            ErrorKind::Overloaded,
            "too many handlers are waiting for nested calls: dispatch fewer at once",
        ),
        Stop::Unread => journal("what this session has done before cannot be read"),
        Stop::Predecessor => {
            new(ErrorKind::Cancelled, "an earlier call of this batch failed, so this one was skipped")
                .with_reason(Reason::Predecessor)
        }
    }
}

fn rate_limited(retry_after: Duration) -> CallError {
    let span = wording::Span(retry_after);
    let message = format!("the tool's rate limit is reached; try again in {span}");
    let mut error = new(ErrorKind::RateLimited, message);
    error.retry_after = Some(retry_after);
    error
}

fn key_in_progress() -> CallError {
    new(ErrorKind::KeyInProgress, "a call with this idempotency key is still running")
}

fn sink(message: &str) -> CallError {
    new(ErrorKind::Internal, message).with_reason(Reason::Sink)
}

fn journal(message: &str) -> CallError {
    new(ErrorKind::Internal, message)
        .with_reason(Reason::Journal)
        .with_advice("Nothing was done. This is a fault of the engine, not of the call.")
}

fn results_full(whose: &str, max: usize) -> CallError {
    let message = format!("there is no room for more results: those of {whose} may hold {max} bytes");
    let advice = "Nothing was run. Ask for less at a time, in a smaller batch.";
    new(ErrorKind::Overloaded, message).with_reason(Reason::ResultBudget).with_advice(advice)
}

fn changed(message: &str) -> CallError {
    let mut error = new(ErrorKind::PermissionDenied, message);
    error.retryable = true;
    error.with_advice("Nothing was done. Send the call again if it is still needed.")
}
