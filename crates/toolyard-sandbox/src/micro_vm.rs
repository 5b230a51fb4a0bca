//! Virtual machines.
//!
//! ```text
//!   Execution ─► limits ─ one that cannot be kept is refused by name (SB-4) ─► a size of memory
//!             ─► reach ── paths, opened by handle ─► copies ──┐
//!             ─► Tool::program ─► a command, its own files ───┼─► Call ─► a machine of its own ─► Ended ─► result
//!                                                             │                                  │
//!   the workspace ◄─ what changed, unless it changed here too ◄──────────────────────────────────┘
//! ```

mod attended;
mod copied;
mod ended;
mod granted;
mod kept;
mod written_back;

use crate::{printed::ERRORS_BYTES, unwritten::Unwritten};
use copied::Copied;
use serde_json::Value;
use std::{future::pending, num::NonZeroU32, path::PathBuf, sync::Arc};
use tokio::{task::spawn_blocking, time::Instant};
use toolyard::{Execution, Failure, Running, SandboxError, Stopped, Work};
use toolyard_core::{Command, Program, ProgramIo, Sandbox, ToolContext, ToolError, ToolOutput, Usage};
use toolyard_program::Given;
use toolyard_tools::Workspace;
use toolyard_vm::{Call, CallFile, Change, End, Machines};
use written_back::Back;

/// The most bytes of files that go into a machine, and come back, unless something else is set.
const FILES_BYTES: u64 = 64 << 20;

/// The memory of a machine in MiB unless sizes are set.
const MEMORY_MIB: NonZeroU32 = NonZeroU32::new(128).expect("it is not zero");

/// The sandbox *micro-VM*: each call runs in a virtual machine of its own, with copies of the files that it may use, no
/// network, and nothing of this machine. [`toolyard_vm`] says how.
///
/// # Files
/// A program finds its files where the host has them, as copies: regular files and directories, no links. When it has
/// ended by itself, what it changed where it may write is written back through the [`Workspace`]: contents and new
/// directories, no modes. A file that has changed here meanwhile is left alone, and the call fails with its name, outcome
/// unknown. A file of more than 8 MiB is not written back. Of a call that was stopped nothing is.
///
/// # Programs for people
/// A command of the [`Shell`](toolyard_tools::shell::Shell) has no input and one output, and its result is the same as on
/// the host. Each has a machine of its own: what it leaves to the next one is the workspace.
///
/// # Limits
/// Memory is that of the machine: the largest of the [sizes](Self::memory) within the limit. There is no other.
#[derive(Debug, Clone)]
pub struct VmSandbox {
    machines: Machines,
    /// In MiB, the first for calls without a limit.
    memory: Vec<NonZeroU32>,
    files_max: u64,
    unwritten: Unwritten,
}

impl VmSandbox {
    /// A sandbox of these machines, with 128 MiB of memory.
    pub fn new(machines: Machines) -> Self {
        Self { machines, memory: vec![MEMORY_MIB], files_max: FILES_BYTES, unwritten: Unwritten::default() }
    }

    /// Sets the sizes of memory that machines may have, in MiB; the first is that of calls without a limit. Without any
    /// it stays as it was.
    #[must_use]
    pub fn memory(mut self, sizes: impl IntoIterator<Item = NonZeroU32>) -> Self {
        let sizes: Vec<NonZeroU32> = sizes.into_iter().collect();
        if !sizes.is_empty() {
            self.memory = sizes;
        }
        self
    }

    /// Sets how many bytes of files go into a machine at most, and come back; 64 MiB unless set. A call with more does not
    /// start.
    #[must_use]
    pub fn files_max(mut self, bytes: u64) -> Self {
        self.files_max = bytes;
        self
    }

    /// Keeps paths from being written, although they lie in what is granted (SB-11). What a [`Workspace`] guards is kept
    /// anyway.
    #[must_use]
    pub fn keep<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.unwritten.add(paths);
        self
    }

    /// Sets whether `.git/hooks` and `.git/config` of the workspace are kept from being written, which they are by
    /// default: git runs what stands there, and on the host.
    #[must_use]
    pub fn keep_git(mut self, keeps: bool) -> Self {
        self.unwritten.keep_git(keeps);
        self
    }

    /// Runs a program that does nothing, in a machine of the first size. Boots one if there is no snapshot yet.
    ///
    /// # Errors
    /// Why this machine cannot do it.
    pub async fn probe(&self) -> Result<(), String> {
        let call = Call::new("/bin/true");
        let ended = self.machines.run(self.memory[0].get(), call, pending()).await;
        match ended.map_err(|error| error.to_string())?.end {
            End::Exited(0) => Ok(()),
            other => Err(format!("a program that does nothing ended so: {other:?}")),
        }
    }

    /// Whether it keeps this limit, by its name in
    /// [`ResourceLimits::kept_by_sandboxes`](toolyard_core::ResourceLimits::kept_by_sandboxes).
    pub fn keeps(limit: &str) -> bool {
        kept::is_kept(limit)
    }

    pub(crate) fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let memory = kept::memory(&execution.confinement.limits, &self.memory)?;
        let reach = execution.reach()?;
        let kept = self.unwritten.resolved(&execution.cx, reach.root());
        let granted = granted::grant(&reach)?;
        let work = async move {
            let Some(Program::Command(command)) = execution.tool.program(execution.args)? else {
                return Err(broken("it has no program that a machine could run".to_owned()));
            };
            let cx = &execution.cx;
            if cx.is_cancelled() {
                return Err(ToolError::cancelled("cancelled before it started").no_side_effect().into());
            }
            let files_max = self.files_max;
            let files = command.clone();
            // Copying keeps a thread, and this is one of the async runtime.
            let copied = spawn_blocking(move || Copied::of(granted, &files, files_max)).await;
            let copied = copied.map_err(|error| broken(error.to_string()))?.map_err(broken)?;
            let call = call(&command, execution.args, cx, &copied).returned_bytes(files_max);
            self.run(memory, call, copied, kept, &command.io, cx).await
        };
        Ok(Running { result: Work::sandboxed(work), stopped: Stopped::WhenDropped })
    }

    async fn run(
        &self,
        memory: NonZeroU32,
        call: Call,
        copied: Copied,
        kept: Vec<PathBuf>,
        io: &ProgramIo,
        cx: &ToolContext,
    ) -> Result<ToolOutput, Failure> {
        let started_at = Instant::now();
        let mut stopped = toolyard_tools::shell::Stopped::Cancelled;
        let stop = async {
            match io {
                ProgramIo::Contract(_) => cx.cancelled().await,
                ProgramIo::Terminal(terminal) => stopped = attended::stopped(terminal, cx).await,
            }
        };
        let ended = self.machines.run(memory.get(), call, stop).await;
        let mut ended = ended.map_err(|error| broken(error.why))?;
        let elapsed = started_at.elapsed();
        let changes = std::mem::replace(&mut ended.changes, Ok(Vec::new()));
        let back = write_back(changes, copied, kept, cx).await;
        let result = match io {
            ProgramIo::Contract(kind) => ended::result(ended, *kind, back),
            ProgramIo::Terminal(terminal) => attended::answer(ended, terminal, stopped, elapsed, back),
        };
        Ok(Usage::lasting(elapsed).told_in(result)?)
    }
}

/// Writes what a program changed back to the workspace.
///
/// # Errors
/// What is not written, and why.
///
/// # Cancel safety
/// Dropping the future ends the writing: nothing is written for a call that has been given up.
async fn write_back(
    changes: Result<Vec<Change>, String>,
    copied: Copied,
    kept: Vec<PathBuf>,
    cx: &ToolContext,
) -> Result<(), String> {
    let changes = changes.map_err(|why| format!("what it changed was not taken back: {why}"))?;
    let Some(workspace) = cx.resource::<Workspace>().cloned() else { return Ok(()) };
    // Ends with this future.
    let wanted = Arc::new(());
    let while_wanted = Arc::downgrade(&wanted);
    let back = spawn_blocking(move || {
        let is_wanted = || while_wanted.strong_count() > 0;
        Back { workspace: &workspace, copied: &copied, kept: &kept }.write(changes, is_wanted)
    });
    back.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// What a machine is given of the tool's own, by the contract unless it is for people, and of files.
fn call(command: &Command, args: &Value, cx: &ToolContext, copied: &Copied) -> Call {
    let mut call = Call::new(&command.program).arguments(command.arguments.iter().cloned());
    for variable in &*command.variables {
        call = call.variable(&*variable.name, variable.value.clone());
    }
    // Whoever's home is meant, it is not in there.
    let mut call = by_contract(call.variable("HOME", "/tmp"), command, args, cx);
    if let Some(root) = copied.root() {
        call = call.within(root.join(&command.directory));
    }
    let call = copied.directories().fold(call, Call::directory);
    let call = copied.files().fold(call, |call, (path, file)| {
        call.file(CallFile { path, content: file.content.clone(), is_executable: file.is_executable })
    });
    let call = copied.writable().fold(call, Call::returned);
    let cx = cx.clone();
    call.kept(command.output_bytes, ERRORS_BYTES).on_errors(move |text| cx.emit(text))
}

/// The document and the variables of the contract, which stand above what the configuration says; of a program for people
/// one output.
fn by_contract(call: Call, command: &Command, args: &Value, cx: &ToolContext) -> Call {
    match command.io {
        ProgramIo::Terminal(_) => call.merged(),
        ProgramIo::Contract(_) => {
            let given = Given::new(args, cx, Instant::now());
            let variables = given.variables().into_iter();
            let call = variables.fold(call, |call, (name, value)| call.variable(name, value));
            call.input(given.into_document())
        }
    }
}

/// The sandbox failed before the program started.
fn broken(why: String) -> Failure {
    Failure::Sandbox { why, started: false }
}

/// The sandbox, for errors that name it.
const MICRO_VM: Sandbox = Sandbox::MicroVm;
