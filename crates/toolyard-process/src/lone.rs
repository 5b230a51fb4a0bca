//! A program on a system without process groups: only its own process is known.

use crate::{
    End, Program, Ran, Report, Rest,
    pipes::Theirs,
    processes::{Orders, Progress},
};
use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

/// How long to wait for a process that was killed.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// The process, for whoever kills it directly: that is left to the task that watches it.
#[derive(Debug, Clone)]
pub(crate) struct Group;

/// A process that may still run. Drop kills it at once.
pub(crate) struct Members {
    child: Child,
}

/// Starts a program.
pub(crate) fn start(program: Program, theirs: Theirs) -> io::Result<(Members, Group)> {
    let mut command = Command::new(&program.path);
    command.args(&program.args).env_clear().envs(&program.env).kill_on_drop(true);
    if let Some(directory) = program.directory.path() {
        command.current_dir(directory);
    }
    command.stdin(Stdio::from(theirs.stdin)).stdout(Stdio::from(theirs.stdout));
    command.stderr(Stdio::from(theirs.stderr));
    Ok((Members { child: command.spawn()? }, Group))
}

impl Group {
    pub(crate) fn kill(&self) {}
}

impl Members {
    /// The process id of the program.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the program. Without signals, whoever is to end is killed.
    pub(crate) async fn watch(mut self, orders: Orders, progress: watch::Sender<Progress>) {
        progress.send_replace(Progress::Running);
        let status = tokio::select! {
            biased;
            () = orders.kill.cancelled() => None,
            () = orders.terminate.cancelled() => None,
            status = self.child.wait() => Some(status.ok()),
        };
        let (end, rest) = match status {
            Some(status) => (status.and_then(end), Rest { left: 0, surviving: 0 }),
            None => (None, Rest { left: 1, surviving: usize::from(!self.kill().await) }),
        };
        let ran = Ran { end, rest: Some(rest), used: None };
        progress.send_replace(Progress::Ended(Report::Ran(ran)));
    }

    /// Returns whether it has ended.
    async fn kill(&mut self) -> bool {
        // An error means that it has ended already.
        let _ = self.child.start_kill();
        timeout(KILL_GRACE, self.child.wait()).await.is_ok()
    }
}

fn end(status: ExitStatus) -> Option<End> {
    status.code().map(End::Exited)
}
