//! From the verdict on an attempt to what its caller is told (V4, V5).

use crate::{
    call::{
        attempt::{
            backend::Failure,
            host::LostThread,
            supervise::{Verdict, Withdrawn},
        },
        ending::Ending,
        refusals::Refusal,
        stop::Stop,
    },
    config::OUTPUT_DEPTH_MAX,
    tasks::{Panic, log_unclassified},
    tool::ToolEntry,
};
use toolyard_core::{
    CallError, Confinement, Effect, ErrorKind, Reason, ResourceLimits, ToolError, ToolErrorKind, ToolOutput,
    wording,
};
use toolyard_redact::{Marks, Redactor};

/// How much of a sandbox's explanation goes into a message.
const WHY_CHARS_MAX: usize = 500;

/// What the classification depends on beside the verdict.
pub(crate) struct Facts<'a> {
    pub(crate) entry: &'a ToolEntry,
    pub(crate) confinement: &'a Confinement,
    pub(crate) output_bytes_max: usize,
    /// Why the call had been told to stop, if it had.
    pub(crate) stop: Option<Stop>,
    /// The attempt's number.
    pub(crate) attempt: u32,
    /// Keeps secrets out of log lines.
    pub(crate) redactor: Option<&'a Redactor>,
}

/// The result of an attempt. Handler code has started, unless the verdict says otherwise.
#[inline(always)]
pub(crate) fn classify(verdict: Verdict, facts: &Facts<'_>) -> Result<ToolOutput, Box<CallError>> {
    match verdict {
        Verdict::Done(Ok(output)) if output.success && fits(&output, facts) => Ok(output),
        verdict => classify_failure(verdict, facts),
    }
}

#[cold]
#[inline(never)]
fn classify_failure(verdict: Verdict, facts: &Facts<'_>) -> Result<ToolOutput, Box<CallError>> {
    let error = match verdict {
        Verdict::Done(Ok(output)) if output.success => match check(Some(&output), 0, facts) {
            Ok(()) => return Ok(output),
            Err(error) => error,
        },
        Verdict::Done(Ok(output)) => reported_failure(output, facts),
        Verdict::Done(Err(failure)) => match *failure {
            Failure::Tool(error) => failed(&error, facts),
            Failure::Sandbox { why, started: true } => sandbox_failed(&why, facts),
            Failure::Sandbox { why, started: false } => {
                return Err(Box::new(sandbox_did_not_start(&why, facts)));
            }
        },
        Verdict::Panicked(panic) => panicked(facts, &panic),
        Verdict::TimedOut(limit, output) => {
            let error = unknown_effect(ErrorKind::Timeout, wording::wall_time_limit(limit), facts);
            match check(Some(&output), 0, facts) {
                Ok(()) => error.with_output(output),
                Err(_) => error,
            }
        }
        Verdict::PastDeadline => {
            unknown_effect(ErrorKind::DeadlineExceeded, "the call's deadline passed".to_owned(), facts)
        }
        Verdict::Starved => {
            let what = "the call could not resume: what it needs is held by an abandoned handler";
            unknown_effect(ErrorKind::Timeout, what.to_owned(), facts).with_reason(Reason::Zombie)
        }
        Verdict::Abandoned(grace) => {
            tracing::warn!(tool = facts.entry.name(), "a cancelled handler did not stop and was abandoned");
            let grace = wording::Span(grace);
            unknown_effect(
                ErrorKind::Cancelled,
                format!("the call was cancelled and did not stop within {grace}"),
                facts,
            )
        }
        Verdict::NotTaken(why) => return Err(Box::new(not_taken(why, facts).not_started())),
        Verdict::Refused(error) => {
            return Err(Box::new(CallError::new(ErrorKind::SandboxError, error.to_string()).not_started()));
        }
    };
    let error = error.after_attempts(facts.attempt);
    Err(Box::new(error))
}

/// The error of a call whose handler no thread had taken up.
fn not_taken(why: Withdrawn, facts: &Facts<'_>) -> CallError {
    match why {
        Withdrawn::Stopped => stopped(facts.stop.unwrap_or(Stop::Cancelled)),
        Withdrawn::TimedOut(limit) => Refusal::NoThread(limit).error(),
        Withdrawn::PastDeadline => {
            CallError::new(ErrorKind::DeadlineExceeded, "the call's deadline passed before it started")
        }
    }
}

/// The error of a call whose sandbox failed before it could start (SM-3): it may be sent again as if it had not been.
fn sandbox_did_not_start(why: &str, facts: &Facts<'_>) -> CallError {
    if let Some(stop) = facts.stop {
        return stopped(stop).not_started();
    }
    let message = sandbox_message("before the call started", why, facts);
    let mut error = CallError::new(ErrorKind::SandboxError, message).not_started();
    error.set_retryable(true);
    error
}

/// The error of a call whose sandbox failed under it.
fn sandbox_failed(why: &str, facts: &Facts<'_>) -> CallError {
    match facts.stop {
        Some(stop) => {
            let Stopping { kind, message } = Stopping::by(stop);
            unknown_effect(kind, message.to_owned(), facts)
        }
        None => {
            unknown_effect(ErrorKind::SandboxError, sandbox_message("while the call ran", why, facts), facts)
        }
    }
}

fn sandbox_message(when: &str, why: &str, facts: &Facts<'_>) -> String {
    let why = first_line(why);
    let end = why.char_indices().nth(WHY_CHARS_MAX).map_or(why.len(), |(end, _)| end);
    format!("sandbox '{}' failed {when}: {}", facts.confinement.sandbox.as_str(), &why[..end])
}

/// Whether a tool's output is within its bounds.
#[inline]
fn fits(output: &ToolOutput, facts: &Facts<'_>) -> bool {
    output.size() <= output_limit(&facts.confinement.limits, facts.output_bytes_max)
        && output.nests_at_most(OUTPUT_DEPTH_MAX)
}

/// Checks that a tool's output, and so many bytes beside it, are within their bounds.
fn check(output: Option<&ToolOutput>, beside: usize, facts: &Facts<'_>) -> Result<(), CallError> {
    let bytes = beside + output.map_or(0, ToolOutput::size);
    within(bytes, output_limit(&facts.confinement.limits, facts.output_bytes_max))?;
    if output.is_none_or(|output| output.nests_at_most(OUTPUT_DEPTH_MAX)) {
        return Ok(());
    }
    let message = format!("the output has data that nests deeper than {OUTPUT_DEPTH_MAX} levels");
    Err(CallError::new(ErrorKind::OutputInvalid, message))
}

#[inline]
fn output_limit(limits: &ResourceLimits, output_bytes_max: usize) -> usize {
    limits.output_bytes.unwrap_or(usize::MAX).min(output_bytes_max)
}

fn within(bytes: usize, limit: usize) -> Result<(), CallError> {
    if bytes <= limit {
        return Ok(());
    }
    let message = format!("the output has {bytes} bytes, more than the limit of {limit}");
    Err(CallError::new(ErrorKind::OutputTooLarge, message))
}

/// Takes secrets out of the end of an attempt; returns the marks it now has in their place. The marks may be longer than the secrets, and the bound applies
/// to what is kept (V1).
#[cold]
#[inline(never)]
pub(crate) fn redact(
    ending: &mut Ending,
    redactor: &Redactor,
    limits: &ResourceLimits,
    output_bytes_max: usize,
) -> Marks {
    let limit = output_limit(limits, output_bytes_max);
    let (marks, fits) = match &mut ending.status {
        Ok(output) => (redactor.output(output), within(output.size(), limit)),
        Err(error) => (redact_error(error, redactor), within(error.output_size(), limit)),
    };
    if let Err(error) = fits {
        ending.status = Err(Box::new(error.after_attempts(ending.attempts)));
    }
    marks
}

/// If the message is the first line of the output, it is taken again from the redacted output: a secret may go beyond
/// the end of that line.
fn redact_error(error: &mut CallError, redactor: &Redactor) -> Marks {
    let first_line =
        |error: &CallError| error.output().map(|output| first_line(&output.to_text()).to_owned());
    let is_first_line = first_line(error).is_some_and(|line| line == error.message);
    let marks = redactor.error(error);
    if is_first_line && let Some(line) = first_line(error) {
        error.message = line;
    }
    marks
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The tool ran and reports failure: its output is kept whole, and the message is its first line (V5).
fn reported_failure(output: ToolOutput, facts: &Facts<'_>) -> CallError {
    if let Err(error) = check(Some(&output), 0, facts) {
        return error;
    }
    let text = output.to_text();
    if let Some(stop) = facts.stop {
        return stopped(stop).with_output(output);
    }
    CallError::new(ErrorKind::ExecutionError, first_line(&text)).with_output(output)
}

/// The error of a call that was told to stop and did. Its output so far is kept (SC-5).
fn stopped(stop: Stop) -> CallError {
    let Stopping { kind, message } = Stopping::by(stop);
    CallError::new(kind, message)
}

/// What the caller of a stopped call is told.
struct Stopping {
    kind: ErrorKind,
    message: &'static str,
}

impl Stopping {
    fn by(stop: Stop) -> Self {
        let (kind, message) = match stop {
            Stop::Failed => (ErrorKind::Internal, "the engine failed while the call ran"),
            _ => (ErrorKind::Cancelled, "the call was cancelled while it ran"),
        };
        Self { kind, message }
    }
}

fn failed(tool_error: &ToolError, facts: &Facts<'_>) -> CallError {
    if let Err(error) = check(tool_error.output(), tool_error.message().len(), facts) {
        return error;
    }
    let output = || tool_error.output().cloned().unwrap_or_else(|| ToolOutput::parts(Vec::new()));
    if let Some(stop) = facts.stop {
        let mut error = stopped(stop).with_output(output());
        error.source = tool_error.source().cloned();
        return error;
    }
    if tool_error.kind() == ToolErrorKind::Unclassified {
        log_unclassified(tool_error, facts.entry.name(), facts.redactor);
    }
    let mut error = CallError::new(tool_error.kind().into(), tool_error.message()).with_output(output());
    // A handler that stopped midway does not know what it has changed.
    let is_cut = tool_error.kind() == ToolErrorKind::Timeout || tool_error.has_unknown_outcome();
    let only_looks = facts.entry.spec().side_effects.is_read_only();
    error.set_effect(if is_cut && !only_looks { Effect::Unknown } else { Effect::Failed });
    error.retry_after = tool_error.retry_after_hint();
    error.source = tool_error.source().cloned();
    error.user_visible = tool_error.is_user_visible().unwrap_or(error.user_visible);
    // If the tool must not run twice, only its caller can judge whether to retry, unless nothing was changed.
    let may_repeat = facts.entry.spec().is_repeatable() || tool_error.has_no_side_effect();
    error.set_retryable(error.retryable && may_repeat);
    error
}

fn panicked(facts: &Facts<'_>, panic: &Panic) -> CallError {
    if panic.is::<LostThread>() {
        tracing::error!(tool = facts.entry.name(), "the thread of a blocking handler was lost");
        return unknown_effect(
            ErrorKind::Internal,
            "the call's thread was lost before it ended".to_owned(),
            facts,
        );
    }
    panic.log("a handler panicked", Some(facts.entry.name()), facts.redactor);
    unknown_effect(ErrorKind::Panic, wording::INTERNAL_FAILURE.to_owned(), facts)
}

/// The error of a handler that was cut off: it may have done everything, a part or nothing, unless it is read-only.
fn unknown_effect(kind: ErrorKind, message: String, facts: &Facts<'_>) -> CallError {
    let mut error = CallError::new(kind, message);
    let only_looks = facts.entry.spec().side_effects.is_read_only();
    error.set_effect(if only_looks { Effect::Failed } else { Effect::Unknown });
    error.set_retryable(kind == ErrorKind::Timeout && facts.entry.spec().is_repeatable());
    error
}
