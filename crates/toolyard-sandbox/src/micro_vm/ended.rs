//! How a program in a machine ended, as the result of its call.

use crate::printed;
use toolyard_core::{OutputKind, ToolError, ToolOutput};
use toolyard_program::Exit;
use toolyard_vm::{End, Ended};

/// The result of a call that ended so (SB-2, SB-8). What `back` has as its error was not written back. Of a program that
/// did not end by itself nothing was, so it has changed nothing.
///
/// # Errors
/// [`ToolError`], unless the program said itself that it succeeded or failed, and what it wrote is where it belongs.
pub(super) fn result(
    ended: Ended,
    kind: OutputKind,
    back: Result<(), String>,
) -> Result<ToolOutput, ToolError> {
    let Ended { end, output, errors, .. } = ended;
    let errors = errors.into_text();
    let ended = |exit| toolyard_program::Ended { exit, output: printed::kept(output), errors };
    let exit = match end {
        End::NotStarted(why) => {
            return Err(ToolError::execution(format!("cannot start the program: {why}")).no_side_effect());
        }
        End::Stopped => {
            let stopped = ToolError::cancelled("the program was stopped").no_side_effect();
            return Err(ended(Exit::Code(0)).stopped(stopped));
        }
        End::Vanished => {
            let vanished =
                ToolError::execution("the program's virtual machine ended under it").no_side_effect();
            return Err(ended(Exit::Code(0)).stopped(vanished));
        }
        End::Exited(code) => Exit::Code(code),
        End::Killed(signal) => Exit::Signal(signal),
        _ => return ended(Exit::Limit("output")).result(kind).map_err(ToolError::no_side_effect),
    };
    match back {
        Ok(()) => ended(exit).result(kind),
        Err(why) => Err(ended(exit).stopped(ToolError::execution(why).outcome_unknown())),
    }
}
