//! What the end of an attempt says to each of the breakers it passed (V4, CB-9).
//!
//! ```text
//!   end of the attempt                       tool      back-end   sandbox
//!   output, or the tool says no              success   success    success
//!   transport failure (transient)            failure   failure    success
//!   another failure of the tool              failure   –          success
//!   timeout, panic                           failure   –          –
//!   the sandbox failed, after its start      failure   –          failure
//!   the sandbox failed, before its start     –         –          failure
//!   not what the grant asks; cut; ignored    –         –          –
//! ```

use toolyard_core::{
    ErrorKind,
    error::BreakerVerdict::{self, Failure, Ignored, Success},
};

/// A verdict for each breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdicts {
    pub(super) tool: BreakerVerdict,
    pub(super) backend: BreakerVerdict,
    pub(super) sandbox: BreakerVerdict,
}

impl Verdicts {
    /// An attempt with an output.
    pub(crate) const SUCCESS: Self = Self { tool: Success, backend: Success, sandbox: Success };

    /// An attempt that says nothing of anything.
    pub(crate) const IGNORED: Self = Self { tool: Ignored, backend: Ignored, sandbox: Ignored };

    /// An attempt that ended with an error of this kind, whatever its sandbox did.
    pub(crate) fn of(error: ErrorKind) -> Self {
        let tool = error.breaker();
        let backend = match tool {
            // What a tool makes of the answer is its own.
            Failure if error != ErrorKind::Transient => Ignored,
            verdict => verdict,
        };
        let sandbox = match (error, tool) {
            // Cut off: perhaps it was the sandbox that hung.
            (ErrorKind::Timeout | ErrorKind::Panic, _) => Ignored,
            // The tool has failed, in a sandbox that works.
            (_, Failure) => Success,
            (_, verdict) => verdict,
        };
        Self { tool, backend, sandbox }
    }

    /// An attempt whose sandbox failed. The tool's own breaker counts it only if the tool may have started: what did
    /// not run says nothing of it.
    pub(crate) fn of_failed_sandbox(started: bool) -> Self {
        Self { tool: if started { Failure } else { Ignored }, backend: Ignored, sandbox: Failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CB-9: no end of a tool is a failure of its sandbox, and of the back-end only a transport failure.
    #[test]
    fn every_breaker_counts_its_own_failures() {
        for kind in ErrorKind::ALL {
            let Verdicts { tool, backend, sandbox } = Verdicts::of(*kind);
            assert_eq!(tool, kind.breaker(), "{kind}");
            assert_ne!(sandbox, Failure, "{kind}");
            assert_eq!(backend == Failure, *kind == ErrorKind::Transient, "{kind}");
            assert!(tool != Ignored || (backend, sandbox) == (Ignored, Ignored), "{kind}");
        }
    }

    /// CB-9, SM-3: a failed sandbox counts as failed, and the tool only if it may have started.
    #[test]
    fn a_failed_sandbox_is_counted_as_such() {
        for started in [false, true] {
            let Verdicts { tool, backend, sandbox } = Verdicts::of_failed_sandbox(started);
            assert_eq!((tool == Failure, backend, sandbox), (started, Ignored, Failure));
        }
    }
}
