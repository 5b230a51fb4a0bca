//! A program for people in a machine: when it is stopped, and how it ended, as the result of its call.

use std::time::Duration;
use tokio::time::sleep;
use toolyard_core::{Terminal, ToolContext, ToolError, ToolOutput};
use toolyard_process::{Ran, Rest};
use toolyard_tools::shell::{Finished, Stopped};
use toolyard_vm::{End, Ended};

/// Waits until it has to stop.
pub(super) async fn stopped(terminal: &Terminal, cx: &ToolContext) -> Stopped {
    let Some(limit) = terminal.limit else {
        cx.cancelled().await;
        return Stopped::Cancelled;
    };
    tokio::select! {
        biased;
        () = cx.cancelled() => Stopped::Cancelled,
        () = sleep(limit) => Stopped::Limit(limit),
    }
}

/// The result of a call that ended so, or was stopped for this reason, as on the host. What `back` has as its error was
/// not written back. Of a program that did not end by itself nothing was, so it has changed nothing.
///
/// # Errors
/// [`ToolError`] for a program that did not end by itself, or whose changes are not where they belong.
pub(super) fn answer(
    ended: Ended,
    terminal: &Terminal,
    stopped: Stopped,
    elapsed: Duration,
    back: Result<(), String>,
) -> Result<ToolOutput, ToolError> {
    let Ended { end, output, .. } = ended;
    let finished = |end, stopped, output| {
        // Nothing is left of a machine.
        let ran = Ran { end, rest: Some(Rest { left: 0, surviving: 0 }), used: None };
        Finished { command: &terminal.command, ran, stopped, elapsed, output }
    };
    let by_itself = |end, output| written(finished(Some(end), None, output).answer(), back);
    let answered = match end {
        End::Exited(code) => return by_itself(toolyard_process::End::Exited(code), output),
        End::Killed(signal) => return by_itself(toolyard_process::End::Killed(signal), output),
        End::NotStarted(why) => Err(ToolError::execution(format!("cannot start the shell: {why}"))),
        End::Stopped => finished(None, Some(stopped), output).answer(),
        End::OutputLimit => {
            let limit = ToolError::execution("the command ran into its limit of output");
            Err(limit.with_output(ToolOutput::text(output.into_text())))
        }
        _ => finished(None, None, output).answer(),
    };
    answered.map_err(ToolError::no_side_effect)
}

/// What a program that ended by itself says, unless what it changed is not where it belongs.
fn written(
    answered: Result<ToolOutput, ToolError>,
    back: Result<(), String>,
) -> Result<ToolOutput, ToolError> {
    match (answered, back) {
        (Ok(output), Err(why)) => Err(ToolError::execution(why).outcome_unknown().with_output(output)),
        (answered, _) => answered,
    }
}
