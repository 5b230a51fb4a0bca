//! What a planner should do after a failed call.

use super::ErrorKind;
use serde::{Deserialize, Serialize};

/// The three ways to continue after a failed call, for a loop that plans and executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// The same call would fail again or must not be repeated: give the error to the model.
    Replan,
    /// The same call may succeed later; see `retry_after`.
    RetryLater,
    /// The budget is spent or the call was cancelled: stop here.
    Stop,
}

impl ErrorKind {
    /// What a planner should do next, by the kind alone; [`CallError::reaction`](super::CallError::reaction) knows more. Kinds that leave the effect unknown, such as a timeout or a panic, are never
    /// [`Reaction::RetryLater`], because such a call must not be repeated blindly.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{ErrorKind, Reaction};
    /// assert_eq!(ErrorKind::CircuitOpen.reaction(), Reaction::RetryLater);
    /// assert_eq!(ErrorKind::BudgetExceeded.reaction(), Reaction::Stop);
    /// assert_eq!(ErrorKind::InvalidInput.reaction(), Reaction::Replan);
    /// ```
    pub const fn reaction(self) -> Reaction {
        match self {
            Self::BudgetExceeded | Self::Cancelled | Self::ShuttingDown | Self::DeadlineExceeded => {
                Reaction::Stop
            }
            Self::RateLimited
            | Self::Overloaded
            | Self::QueueTimeout
            | Self::CircuitOpen
            | Self::KeyInProgress
            | Self::Transient => Reaction::RetryLater,
            Self::NotFound
            | Self::InvalidInput
            | Self::PermissionDenied
            | Self::FsDenied
            | Self::NetDenied
            | Self::UserDenied
            | Self::ConfirmationTimeout
            | Self::Aborted
            | Self::DepthExceeded
            | Self::SerialNesting
            | Self::KeyMismatch
            | Self::AlreadyExecuted
            | Self::Timeout
            | Self::ExecutionError
            | Self::OutputInvalid
            | Self::OutputTooLarge
            | Self::Panic
            | Self::SandboxError
            | Self::Interrupted
            | Self::Internal => Reaction::Replan,
        }
    }
}
