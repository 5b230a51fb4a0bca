//! Exit codes for scripts. A code never changes its meaning.

/// The section of `--help` about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
    0  every call ended with an output; with plan, no call would be refused
    1  some call ended in an error result, all results are printed (0 with run --exit-zero); with plan, some call would be
       refused
    2  usage or configuration, or a file that could not be written
    3  the input could not be read as a batch; for a stream, results of the calls before the error are printed
  130  interrupted: finished results are printed, the rest are `shutting_down` or `cancelled`";

/// The result of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Every call ended with an output.
    Ok = 0,
    /// Some call ended in an error result, or an audited log has errors, or a compared report is worse, or nothing could be
    /// fetched or set up, or a journal is damaged, or has not what is asked for.
    CallFailed = 1,
    /// Usage, configuration, or a file that could not be written.
    Usage = 2,
    /// The input could not be read as a batch.
    Input = 3,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl Exit {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// The more severe of two results: an interrupt, then errors of the program itself, then failed calls.
    pub(crate) fn or(self, other: Self) -> Self {
        if self.code() >= other.code() { self } else { other }
    }
}
