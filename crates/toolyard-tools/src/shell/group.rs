//! A command in its own process group, without a supervisor.

use super::{
    TERM_GRACE, launch,
    report::{End, Report},
};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::{io, pin::Pin, process::Stdio, time::Duration};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// How often to check whether a group that was asked to end has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long to wait for a group that was killed.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// The command that runs `command` in its own process group.
pub(super) fn command(command: &str) -> Command {
    let mut shell = launch::shell(command);
    shell.stdin(Stdio::null()).process_group(0);
    shell
}

/// Starts the command.
pub(super) fn start(
    mut command: Command,
    stop: CancellationToken,
) -> io::Result<Pin<Box<dyn Future<Output = Report> + Send>>> {
    let child = command.spawn()?;
    drop(command); // and with it our copy of the pipe's write end
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the command has no process id"))?;
    let group = Group { pid, is_finished: false };
    Ok(Box::pin(group.watch(child, stop)))
}

/// A group that may still have processes. Drop kills them at once, because nothing is left to wait for them.
struct Group {
    pid: Pid,
    /// Whether the group is finished, so that its number may belong to another one by now.
    is_finished: bool,
}

impl Group {
    async fn watch(mut self, mut child: Child, stop: CancellationToken) -> Report {
        let mut report = Report { started: true, ..Report::default() };
        tokio::select! {
            biased;
            status = child.wait() => report.end = status.ok().map(End::of_child),
            () = stop.cancelled() => {}
        }
        let remaining = usize::from(self.has_processes(&mut child));
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        if !self.ends_within(TERM_GRACE, &mut child).await {
            self.signal(Signal::KILL);
            self.ends_within(KILL_GRACE, &mut child).await;
        }
        report.done = Some((remaining, usize::from(self.has_processes(&mut child))));
        self.is_finished = true;
        report
    }

    async fn ends_within(&self, limit: Duration, child: &mut Child) -> bool {
        let deadline = Instant::now() + limit;
        while self.has_processes(child) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
        true
    }

    /// Whether the group has a process. `try_wait` first, because the leader counts until it is reaped.
    fn has_processes(&self, child: &mut Child) -> bool {
        let _ = child.try_wait();
        test_kill_process_group(self.pid).is_ok()
    }

    fn signal(&self, signal: Signal) {
        // Fails for an empty group, which needs no signal.
        let _ = kill_process_group(self.pid, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_finished {
            self.signal(Signal::KILL);
        }
    }
}
