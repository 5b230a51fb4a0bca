//! Words the result of a command.

use serde_json::Value;
use std::time::Duration;
use toolyard_core::{ToolError, ToolOutput};
use toolyard_process::{End, HeadTail, NotStarted, Ran, Rest};

/// The text that stands for an empty output.
const NO_OUTPUT: &str = "[no output]";

/// Why a program for people was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The call was cancelled, or its time was up.
    Cancelled,
    /// It took longer than the limit in the call's arguments.
    Limit(Duration),
}

/// A program for people that has ended, such as a command of the [`Shell`](super::Shell), for whoever ran it elsewhere.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_process::{End, HeadTail, Ran, Rest};
/// use toolyard_tools::shell::Finished;
/// let mut output = HeadTail::new(1024);
/// output.push(b"no such file\n");
/// let ran = Ran { end: Some(End::Exited(1)), rest: Some(Rest { left: 0, surviving: 0 }), used: None };
/// let finished = Finished { command: "cat x", ran, stopped: None, elapsed: Duration::from_millis(3), output };
/// let answer = finished.answer().unwrap();
/// assert_eq!((answer.success, answer.to_text()), (false, "exit code 1\nno such file\n".to_owned()));
/// ```
#[derive(Debug)]
pub struct Finished<'a> {
    /// What it is called in its result, such as the command line.
    pub command: &'a str,
    /// How it ended.
    pub ran: Ran,
    /// Why it was stopped, if it was.
    pub stopped: Option<Stopped>,
    /// How long it took.
    pub elapsed: Duration,
    /// Its one output.
    pub output: HeadTail,
}

impl Finished<'_> {
    /// The result of its call: its output, with the exit code before it where that is not zero.
    ///
    /// # Errors
    /// [`ToolError`] for one that did not end by itself, with its output so far.
    pub fn answer(self) -> Result<ToolOutput, ToolError> {
        match (self.ran.end, self.stopped) {
            // The command ended before the stop took effect, so its own result counts.
            (Some(end), _) => Ok(self.ended(end)),
            (None, Some(Stopped::Cancelled)) => {
                Err(self.with_output(ToolError::cancelled("the command was stopped")))
            }
            (None, Some(Stopped::Limit(limit))) => Err(self.with_output(ToolError::timed_out(limit))),
            (None, None) => {
                Err(self.with_output(ToolError::execution("the command was terminated from outside")))
            }
        }
    }

    fn ended(self, end: End) -> ToolOutput {
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
        let Self { command, ran, elapsed, output, .. } = self;
        let bytes = output.total();
        let usage = super::usage(&ran, elapsed);
        let output = of(text(output, &ran));
        let output = match ran.end {
            Some(End::Exited(code)) => output.with_metadata("exit_code", code),
            Some(End::Killed(signal)) => output.with_metadata("signal", signal),
            Some(End::Limit(limit)) => output.with_metadata("limit", limit.as_str()),
            // It was stopped before it had one.
            None => output.with_metadata("exit_code", Value::Null),
        };
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        output
            .with_metadata("duration_ms", millis)
            .with_metadata("output_bytes", bytes)
            .with_command_executed(command)
            .with_usage(usage)
    }
}

/// The error that the shell did not run, so that the command has done nothing.
pub(super) fn not_started(why: &NotStarted) -> ToolError {
    let why = match why {
        NotStarted::HelperEnded => "its supervisor exited before the command started".to_owned(),
        why => why.to_string(),
    };
    ToolError::execution(format!("cannot start the shell: {why}")).no_side_effect()
}

/// How the command failed, if it did.
fn failure(end: End) -> Option<String> {
    match end {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Killed(signal) => Some(format!("killed by signal {signal}")),
        End::Limit(limit) => Some(format!("ran into its limit of {limit}")),
    }
}

/// The output, with a note about processes that the command left behind, if any.
fn text(output: HeadTail, ran: &Ran) -> String {
    let mut text = output.into_text();
    if text.is_empty() {
        text = NO_OUTPUT.to_owned();
    }
    if let Some(note) = note(ran) {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}{note}");
    }
    text
}

fn note(ran: &Ran) -> Option<&'static str> {
    match ran.rest {
        None => Some("[its supervisor was killed: some processes may be left]"),
        Some(Rest { surviving: 1.., .. }) => Some("[some of its processes could not be terminated]"),
        // Not for a command that was stopped: processes are expected to be left then.
        Some(Rest { left: 1.., surviving: 0 }) if ran.end.is_some() => {
            Some("[background processes were left and have been terminated]")
        }
        Some(_) => None,
    }
}
