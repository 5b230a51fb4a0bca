//! The arguments of `toolyard sandbox`.

use super::SetupArgs;
use clap::{Args, Subcommand};

const SET_UP_HELP: &str = "\
Examples:
  toolyard sandbox setup micro-vm
  toolyard sandbox setup micro-vm --config toolyard.toml --json

Looks for what virtual machines are made of, as [sandbox.micro_vm] says or in its usual place: qemu-system-x86_64, a
kernel with its modules, a static busybox, and toolyard-vm-agent. What is missing is named, with how to get it; nothing is
downloaded. Then a machine of each size in memory is booted, unless it was before, and written to the cache directory of
this user; and a program that does nothing runs in one.

Fields of --json: qemu, kernel, modules, agent, busybox, accel, snapshots (memory_mib, file, bytes, ready_ms), probe_ms.

Exit codes:
    0  calls can run in virtual machines
    1  something is missing, or this toolyard was built without virtual machines, or one does not start
    2  usage or configuration
  130  interrupted";

/// The subcommands of `sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Make what calls in a sandbox need, and try it
    #[command(subcommand)]
    Setup(SandboxSetup),
}

/// The sandboxes that can be set up.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxSetup {
    /// Virtual machines: find their parts, boot each size of memory once, and keep what it is then
    MicroVm(SandboxSetupArgs),
}

/// Arguments of `sandbox setup`.
#[derive(Debug, Args)]
#[command(after_help = SET_UP_HELP)]
pub(crate) struct SandboxSetupArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
