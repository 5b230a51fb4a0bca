//! What a command came to, in words.

use super::{
    kept::Kept,
    report::{End, Report},
};
use std::time::Duration;
use toolyard_core::{Content, ToolError, ToolOutput};

/// What stands in the place of an output that is none.
const NOTHING: &str = "[no output]";

/// Why a command was made to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    /// The call was told to stop: cancelled, or out of its time.
    Told,
    /// It took longer than the call allows.
    Limit(Duration),
}

/// A command that has ended.
pub(super) struct Ran<'a> {
    pub(super) command: &'a str,
    pub(super) report: Report,
    pub(super) stopped: Option<Stopped>,
    pub(super) ran: Duration,
    pub(super) kept: Kept,
}

impl Ran<'_> {
    pub(super) fn answer(self) -> Result<ToolOutput, ToolError> {
        let vanished = (!self.report.started && self.report.done.is_none())
            .then(|| "its supervisor ended before it began".to_owned());
        if let Some(why) = self.report.failed.as_ref().or(vanished.as_ref()) {
            return Err(ToolError::execution(format!("the shell cannot be started: {why}")).no_side_effect());
        }
        match (self.report.end, self.stopped) {
            // It had ended by itself when it was told to: its own word counts.
            (Some(end), _) => Ok(self.output(end)),
            (None, Some(Stopped::Told)) => Err(self.cut(ToolError::cancelled("the command was stopped"))),
            (None, Some(Stopped::Limit(limit))) => Err(self.cut(ToolError::timed_out(limit))),
            (None, None) => Err(self.cut(ToolError::execution("the command was ended from outside"))),
        }
    }

    fn output(self, end: End) -> ToolOutput {
        let Self { command, report, ran, kept, .. } = self;
        let bytes = kept.total();
        let text = text(kept, &report);
        let output = match failure(end) {
            None => ToolOutput::text(text),
            Some(how) => ToolOutput::failure(format!("{how}\n{text}")),
        };
        let output = match end {
            End::Exited(code) => output.with_metadata("exit_code", code),
            End::Killed(signal) => output.with_metadata("signal", signal),
        };
        let millis = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
        output
            .with_metadata("duration_ms", millis)
            .with_metadata("output_bytes", bytes)
            .with_command_executed(command)
    }

    /// The error with what had come out before it.
    fn cut(self, error: ToolError) -> ToolError {
        let text = text(self.kept, &self.report);
        error.with_content(vec![Content::text(text)])
    }
}

/// How it failed, if it did.
fn failure(end: End) -> Option<String> {
    match end {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Killed(signal) => Some(format!("killed by signal {signal}")),
    }
}

/// The output, and what there is to say of processes that it left.
fn text(kept: Kept, report: &Report) -> String {
    let mut text = kept.into_text();
    if text.is_empty() {
        text = NOTHING.to_owned();
    }
    if let Some(note) = note(report) {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}{note}");
    }
    text
}

fn note(report: &Report) -> Option<&'static str> {
    match report.done {
        None => Some("[its supervisor was ended: processes of it may be left]"),
        Some((_, 1..)) => Some("[some of its processes could not be ended]"),
        // Those of a command that was made to end are no surprise.
        Some((1.., 0)) if report.end.is_some() => {
            Some("[processes were left in the background and have been ended]")
        }
        Some(_) => None,
    }
}
