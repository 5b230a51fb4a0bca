//! Confined processes.
//!
//! ```text
//!   Execution ─► limits ─ one that cannot be kept is refused by name (SB-4); those of all processes need a group
//!             ─► reach ── paths, opened by handle ──► Confinement ─► a helper ─► the program, confined
//!             │        hosts ──► door, and a proxy behind it ──┤         │   by namespaces, or by landlock alone
//!             ─► Tool::program ─► a command ─────────────────┘         │
//!                                            by the contract, or as a program for people ─► result
//! ```

mod granted;
mod kept;
mod means;
mod way_out;

use crate::{command, unwritten::Unwritten};
pub use means::Means;
use serde_json::Value;

use std::path::{Path, PathBuf};
use toolyard::{Execution, Failure, ReachedHosts, Running, SandboxError, Stopped, Work};
use toolyard_core::{Command, HostPattern, Program, ProgramIo, ToolContext, ToolError, ToolOutput};
use toolyard_egress::{Egress, ProxyLimits};
use toolyard_process::{Cgroup, Confinement, Containment, GroupLimits, Helper, NotStarted, Started};
use toolyard_tools::shell::Attended;
use way_out::WayOut;

/// The sandbox *process*: calls run in programs that reach what they are granted and nothing else. [`Confinement`] says
/// how. They have no network; a call that [may reach hosts](toolyard::Reach::hosts) reaches those through a
/// [proxy](toolyard_egress::Proxy) alone, which the variables `http_proxy`, `https_proxy`, `all_proxy` and their twins in
/// capitals name (SB-6).
///
/// It is the sandbox *landlock* too, for calls that are granted that one: the same by other [`Means`], which are weaker and
/// need no namespaces. A call that is granted *process* is never run by those (SB-4).
#[derive(Debug, Clone)]
pub struct ProcessSandbox {
    helper: Helper,
    system: Vec<PathBuf>,
    unwritten: Unwritten,
    egress: Egress,
    private: Vec<HostPattern>,
    net_bytes: Option<u64>,
    cgroup: Option<Cgroup>,
}

/// How many bytes a call may send, and get, through its way out, by default.
const NET_BYTES: u64 = 4 << 30;

impl ProcessSandbox {
    /// A sandbox whose programs are started by this helper.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            system: system(),
            unwritten: Unwritten::default(),
            egress: Egress::new(),
            private: Vec::new(),
            net_bytes: Some(NET_BYTES),
            cgroup: None,
        }
    }

    /// Sets the way out for what its programs send to hosts that are granted.
    #[must_use]
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Lets these hosts, where they are granted, have addresses that are not public.
    #[must_use]
    pub fn allow_private(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        self.private.extend(hosts);
        self
    }

    /// Sets how many bytes a call may send, and how many it may get, through its way out: 4 GiB of each by default, and
    /// any number with `None`. A connection that would pass more ends, and further ones are refused (SB-10).
    #[must_use]
    pub fn net_bytes(mut self, most: Option<u64>) -> Self {
        self.net_bytes = most;
        self
    }

    /// Adds parts of the system that its programs reach, read only.
    #[must_use]
    pub fn system<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.system.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Keeps paths from being written, although they lie in what is granted (SB-11). What a
    /// [`Workspace`](toolyard_tools::Workspace) guards is kept anyway.
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

    /// Gives each call a group in this one, which keeps the limits of all its processes together: memory, CPU time, and
    /// processes, also for root.
    #[must_use]
    pub fn cgroup(mut self, cgroup: Cgroup) -> Self {
        self.cgroup = Some(cgroup);
        self
    }

    /// Tries to confine a program that does nothing by these means, in a group if there is one.
    ///
    /// # Errors
    /// Why this machine cannot do it, and what to do then.
    pub async fn probe(&self, means: Means) -> Result<(), String> {
        let confinement = self.limited(means, GroupLimits::default());
        let program = toolyard_process::Program::new("/bin/true").confined(confinement);
        let mut started = program.start(&self.containment()).map_err(|error| error.to_string())?;
        started.processes.started().await.map_err(|why| means::why(&why))
    }

    /// Why it does not keep this limit on this machine, with or without a [group](Self::cgroup), by its name in
    /// [`ResourceLimits::kept_by_sandboxes`](toolyard_core::ResourceLimits::kept_by_sandboxes); `None` if it keeps it.
    pub fn lacks<'a>(means: Means, limit: &str, cgroup: Option<&'a Cgroup>) -> Option<&'a str> {
        kept::lacking(means, limit, cgroup)
    }

    fn containment(&self) -> Containment {
        Containment::Helper(self.helper.clone())
    }

    /// The system, and a group with these limits if there are groups.
    fn limited(&self, means: Means, limits: GroupLimits) -> Confinement {
        let confinement = means.confinement().system(self.system.iter().cloned());
        match &self.cgroup {
            Some(cgroup) => confinement.cgroup(cgroup, limits),
            None => confinement,
        }
    }

    pub(crate) fn execute<'a>(
        &'a self,
        execution: &'a Execution<'a>,
        means: Means,
    ) -> Result<Running<'a>, SandboxError> {
        let kept = kept::limits(means, &execution.confinement.limits, self.cgroup.as_ref())?;
        let reach = execution.reach()?;
        if reach.reaches_hosts() && !means.has_way_out() {
            return Err(SandboxError::NoHosts(means.sandbox()));
        }
        let root = reach.root().map(Path::to_owned);
        let confinement = self.limited(means, kept.together).limits(kept.each);
        let confinement = granted::grant(confinement, &reach, means.sandbox())?;
        let way_out = reach.hosts().map(|hosts| self.way_out(hosts));
        let confinement = if way_out.is_some() { confinement.door() } else { confinement };
        let work = async move {
            let Some(Program::Command(command)) = execution.tool.program(execution.args)? else {
                let what = "it has no program that a process could run".to_owned();
                return Err(Failure::Sandbox { why: what, started: false });
            };
            let call = Call { means, command: &command, args: execution.args, cx: &execution.cx, root };
            let confinement = self.with_files(confinement, &call)?;
            self.run(&call, confinement, way_out).await
        };
        Ok(Running { result: Work::sandboxed(work), stopped: Stopped::WhenDropped })
    }

    fn way_out(&self, hosts: ReachedHosts) -> WayOut {
        let (bytes_up, bytes_down) = (self.net_bytes, self.net_bytes);
        let limits = ProxyLimits { bytes_up, bytes_down, ..ProxyLimits::default() };
        WayOut::new(hosts, &self.egress, self.private.clone(), limits)
    }

    /// Adds what the program is made of, and what it must not write.
    fn with_files(&self, confinement: Confinement, call: &Call<'_>) -> Result<Confinement, Failure> {
        let files = granted::files(confinement, call.command, &self.system);
        let confinement = files.map_err(|why| Failure::Sandbox { why, started: false })?;
        let kept = self.unwritten.paths(call.cx, call.root.as_deref()).into_iter();
        Ok(kept.fold(confinement, Confinement::keep))
    }

    async fn run(
        &self,
        call: &Call<'_>,
        confinement: Confinement,
        way_out: Option<WayOut>,
    ) -> Result<ToolOutput, Failure> {
        let Call { means, command, args, cx, root } = call;
        if cx.is_cancelled() {
            return Err(ToolError::cancelled("cancelled before it started").no_side_effect().into());
        }
        let (program, document) = command::program(command, args, cx);
        let program = means.at_home(program).confined(confinement);
        let program = match root {
            Some(root) => program.directory(root.join(&command.directory)),
            None => program,
        };
        let program = if way_out.is_some() { way_out::told(program, command) } else { program };
        let started = program.start(&self.containment()).map_err(|error| broken(&error.to_string()))?;
        let mut started = running(started).await?;
        let door = started.door.take();
        let finish = async {
            match &command.io {
                ProgramIo::Contract(kind) => {
                    command::finish(started, document, command.output_bytes, *kind, cx).await
                }
                ProgramIo::Terminal(terminal) => {
                    Attended::new(started, command.output_bytes).finish(terminal, cx).await
                }
            }
        };
        let traffic = way_out.as_ref().map(WayOut::traffic);
        tokio::select! {
            biased;
            finished = finish => Ok(way_out::counted(finished, traffic.as_ref())?),
            Err(failed) = way_out::serve(way_out, door) => Err(failed),
        }
    }
}

/// One attempt of a call.
struct Call<'a> {
    means: Means,
    command: &'a Command,
    args: &'a Value,
    cx: &'a ToolContext,
    /// The workspace's root.
    root: Option<PathBuf>,
}

/// Waits until the program runs, confined.
async fn running(mut started: Started) -> Result<Started, Failure> {
    match started.processes.started().await {
        Ok(()) => Ok(started),
        Err(NotStarted::Refused(why)) => {
            Err(ToolError::execution(format!("cannot start the program: {why}")).no_side_effect().into())
        }
        Err(why) => Err(broken(&means::why(&why))),
    }
}

/// The sandbox failed before the program started.
fn broken(why: &str) -> Failure {
    Failure::Sandbox { why: why.to_owned(), started: false }
}

/// The parts of the system that programs reach unless others are named.
fn system() -> Vec<PathBuf> {
    toolyard_process::SYSTEM.iter().chain(toolyard_process::SYSTEM_FILES).map(PathBuf::from).collect()
}
