//! A command that is called by the contract, from its start to the result of its call (SB-2, SB-7).
//!
//! ```text
//!   arguments ─► standard input          standard output ─► head and tail ─┐
//!   variables ─► environment             standard error  ─► deltas, tail ──┼─► Ended ─► result
//!   told to stop, time is up ─► terminate ─► all its processes end ────────┘
//! ```

mod running;

use running::Running;
use serde_json::Value;
use std::{io, path::Path};
use tokio::time::Instant;
use toolyard_core::{Command, OutputKind, PathScope as _, ProgramIo, ToolContext, ToolError, ToolOutput};
use toolyard_process::{Containment, Program, Started};
use toolyard_program::Given;
use toolyard_tools::Workspace;

/// Runs a command with the rights of this program. However it ends, all that it started ends with it.
///
/// # Cancel safety
/// Dropping the future ends the program.
pub(crate) async fn run(
    command: &Command,
    containment: &Containment,
    args: &Value,
    cx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let ProgramIo::Contract(kind) = command.io else {
        return Err(ToolError::execution("a program for people is run by its own tool").no_side_effect());
    };
    if cx.is_cancelled() {
        return Err(ToolError::cancelled("cancelled before it started").no_side_effect());
    }
    let (program, document) = program(command, args, cx);
    let started = in_directory(program, &command.directory, cx)?.start(containment);
    let started = started.map_err(|error| cannot_start(&error))?;
    finish(started, document, command.output_bytes, kind, cx).await
}

/// Waits for the end of a command that was started, and reads its answer.
pub(crate) async fn finish(
    started: Started,
    document: Vec<u8>,
    output_bytes: usize,
    kind: OutputKind,
    cx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    Running::new(started, document, output_bytes).finish(kind, cx).await
}

/// What to start for one attempt, and the document for its standard input.
pub(crate) fn program(command: &Command, args: &Value, cx: &ToolContext) -> (Program, Vec<u8>) {
    let own = command.variables.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
    let program = Program::new(&command.program).args(command.arguments.iter().cloned()).envs(own);
    match command.io {
        ProgramIo::Terminal(_) => (program, Vec::new()),
        ProgramIo::Contract(_) => {
            let given = Given::new(args, cx, Instant::now());
            // What the contract says stands above what the configuration says.
            let program = program.envs(given.variables()).piped_input().errors_apart();
            (program, given.into_document())
        }
    }
}

/// The program in its directory of the workspace; without a workspace, where this process is.
fn in_directory(program: Program, directory: &Path, cx: &ToolContext) -> Result<Program, ToolError> {
    match cx.resource::<Workspace>() {
        Some(workspace) => {
            let path = workspace.root().join(directory);
            let handle = workspace.directory(directory)?;
            Ok(program.open_directory(handle, path))
        }
        None if directory == Path::new(".") => Ok(program),
        None => {
            Err(ToolError::execution("the program starts in a workspace, and there is none").no_side_effect())
        }
    }
}

fn cannot_start(error: &io::Error) -> ToolError {
    ToolError::execution(format!("cannot start the program: {error}")).no_side_effect()
}
