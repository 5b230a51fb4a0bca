//! Words the result of a command.

use super::{
    ends::Ends,
    report::{End, Report},
};
use serde_json::Value;
use std::time::Duration;
use toolyard_core::{ToolError, ToolOutput};

/// The text that stands for an empty output.
const NO_OUTPUT: &str = "[no output]";

/// Why a command was stopped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    /// The call was cancelled, or its time was up.
    Cancelled,
    /// It took longer than the limit in the call's arguments.
    Limit(Duration),
}

/// A command that has ended.
pub(super) struct Finished<'a> {
    pub(super) command: &'a str,
    pub(super) report: Report,
    pub(super) stopped: Option<Stopped>,
    pub(super) elapsed: Duration,
    pub(super) ends: Ends,
}

impl Finished<'_> {
    pub(super) fn answer(self) -> Result<ToolOutput, ToolError> {
        let vanished = (!self.report.started && self.report.done.is_none())
            .then(|| "its supervisor exited before the command started".to_owned());
        if let Some(why) = self.report.failed.as_ref().or(vanished.as_ref()) {
            return Err(ToolError::execution(format!("cannot start the shell: {why}")).no_side_effect());
        }
        match (self.report.end, self.stopped) {
            // The command ended before the stop took effect, so its own result counts.
            (Some(end), _) => Ok(self.output(end)),
            (None, Some(Stopped::Cancelled)) => {
                Err(self.with_output(ToolError::cancelled("the command was stopped")))
            }
            (None, Some(Stopped::Limit(limit))) => Err(self.with_output(ToolError::timed_out(limit))),
            (None, None) => {
                Err(self.with_output(ToolError::execution("the command was terminated from outside")))
            }
        }
    }

    fn output(self, end: End) -> ToolOutput {
        self.told(|text| match failure(end) {
            None => ToolOutput::text(text),
            Some(how) => ToolOutput::failure(format!("{how}\n{text}")),
        })
    }

    /// The error with the output so far and what is known of the command.
    fn with_output(self, error: ToolError) -> ToolError {
        error.with_output(self.told(ToolOutput::text))
    }

    /// The output of a text, with what is known of the command.
    fn told(self, of: impl FnOnce(String) -> ToolOutput) -> ToolOutput {
        let Self { command, report, elapsed, ends, .. } = self;
        let bytes = ends.total();
        let output = of(text(ends, &report));
        let output = match report.end {
            Some(End::Exited(code)) => output.with_metadata("exit_code", code),
            Some(End::Killed(signal)) => output.with_metadata("signal", signal),
            // It was stopped before it had one.
            None => output.with_metadata("exit_code", Value::Null),
        };
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        output
            .with_metadata("duration_ms", millis)
            .with_metadata("output_bytes", bytes)
            .with_command_executed(command)
    }
}

/// How the command failed, if it did.
fn failure(end: End) -> Option<String> {
    match end {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Killed(signal) => Some(format!("killed by signal {signal}")),
    }
}

/// The output, with a note about processes that the command left behind, if any.
fn text(ends: Ends, report: &Report) -> String {
    let mut text = ends.into_text();
    if text.is_empty() {
        text = NO_OUTPUT.to_owned();
    }
    if let Some(note) = note(report) {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}{note}");
    }
    text
}

fn note(report: &Report) -> Option<&'static str> {
    match report.done {
        None => Some("[its supervisor was killed: some processes may be left]"),
        Some((_, 1..)) => Some("[some of its processes could not be terminated]"),
        // Not for a command that was stopped: processes are expected to be left then.
        Some((1.., 0)) if report.end.is_some() => {
            Some("[background processes were left and have been terminated]")
        }
        Some(_) => None,
    }
}
