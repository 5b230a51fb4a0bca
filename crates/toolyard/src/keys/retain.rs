//! Which results are kept for replay under their key: column 5 of V4.

use toolyard_core::ErrorKind;

/// What happens to a result under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retain {
    /// The next call with the key gets this result.
    Keep,
    /// The next call with the key runs.
    Forget,
}

/// How a keyed call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its error; `None` if it has an output.
    pub(crate) error: Option<ErrorKind>,
    /// Whether an attempt was started.
    pub(crate) started: bool,
    /// Whether running it again does no harm: the tool only reads, or is declared idempotent.
    pub(crate) repeatable: bool,
    /// Whether the handler itself declared that its last attempt changed nothing.
    pub(crate) no_side_effect: bool,
}

impl Ended {
    /// Whether the result is kept (V4, ID-5).
    pub(crate) fn retain(self) -> Retain {
        if self.is_retained() { Retain::Keep } else { Retain::Forget }
    }

    fn is_retained(self) -> bool {
        use ErrorKind as E;
        let Some(error) = self.error else { return true };
        match error {
            // Its effect is unknown and stays so for all later calls, whatever the tool.
            E::Interrupted => true,
            _ if !self.started => false,
            E::ExecutionError | E::OutputInvalid | E::OutputTooLarge => true,
            E::Transient | E::RateLimited => !self.repeatable && !self.no_side_effect,
            E::Timeout | E::Panic | E::SandboxError => !self.repeatable,
            E::DeadlineExceeded | E::Cancelled | E::Internal => !self.repeatable,
            // The handler did not cause these errors. If there was an earlier attempt, it was one that may be
            // repeated.
            E::NotFound | E::InvalidInput | E::PermissionDenied | E::FsDenied | E::NetDenied => false,
            E::UserDenied | E::ConfirmationTimeout | E::Aborted | E::BudgetExceeded => false,
            E::DepthExceeded | E::SerialNesting | E::Overloaded | E::QueueTimeout => false,
            E::CircuitOpen | E::ShuttingDown => false,
            E::KeyMismatch | E::KeyInProgress | E::AlreadyExecuted => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_core::error::Ran;

    fn retained(error: Option<ErrorKind>, [started, repeatable, no_side_effect]: [bool; 3]) -> bool {
        Ended { error, started, repeatable, no_side_effect }.retain() == Retain::Keep
    }

    /// All combinations of started, repeatable and no_side_effect.
    fn flags() -> impl Iterator<Item = [bool; 3]> {
        (0..8).map(|bits| [bits & 4 != 0, bits & 2 != 0, bits & 1 != 0])
    }

    /// Column 5 of V4 for a started call: the code, and whether the result is kept for an idempotent tool, for one
    /// that is not, and for one that is not but declared `no_side_effect`.
    const STARTED: [(&str, [bool; 3]); 11] = [
        ("transient", [false, true, false]),
        ("rate_limited", [false, true, false]),
        ("timeout", [false, true, true]),
        ("execution_error", [true, true, true]),
        ("output_invalid", [true, true, true]),
        ("output_too_large", [true, true, true]),
        ("panic", [false, true, true]),
        ("sandbox_error", [false, true, true]),
        ("deadline_exceeded", [false, true, true]),
        ("cancelled", [false, true, true]),
        ("internal", [false, true, true]),
    ];

    /// V4, column 5: every code of a started call.
    #[test]
    fn what_is_kept_is_what_the_table_says() {
        for kind in ErrorKind::ALL {
            let row = STARTED.iter().find(|(code, _)| *code == kind.code());
            let expected = match row {
                Some((_, row)) => *row,
                None => [*kind == ErrorKind::Interrupted; 3],
            };
            let is = [[true, true, false], [true, false, false], [true, false, true]];
            assert_eq!(is.map(|flags| retained(Some(*kind), flags)), expected, "{kind}");
            assert!(row.is_none() || kind.ran() != Ran::No, "{kind}");
        }
    }

    /// V4: an output is kept, whatever the tool.
    #[test]
    fn an_output_is_kept() {
        assert!(flags().all(|flags| retained(None, flags)));
    }

    /// ID-5: a call that never started is forgotten, except one found unfinished after a crash (ID-9).
    #[test]
    fn what_never_started_is_forgotten() {
        for kind in ErrorKind::ALL {
            let kept = flags().filter(|flags| !flags[0]).any(|flags| retained(Some(*kind), flags));
            assert_eq!(kept, *kind == ErrorKind::Interrupted, "{kind}");
        }
    }
}
