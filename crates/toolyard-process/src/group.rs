//! A program in its own process group, without a helper, on unix.
//!
//! The program's id is that of the group. As long as the program is not reaped, even if it is dead, the id is not reused,
//! and signals to it reach no other process. So it is only observed, and reaped when no more signals will be sent.

use crate::{
    End, Program, Ran, Report, Rest, TERM_GRACE, descriptor3, kept_open,
    pipes::Theirs,
    processes::{Orders, Progress},
    program::InputKind,
};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use std::{
    ffi::{OsStr, OsString},
    io,
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{Signal as Notice, SignalKind, signal},
    sync::watch,
    time::{Instant, sleep},
};

/// How often to check whether a group that was asked to end has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long to wait for a group that was killed.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// A process group, as long as signals may be sent to it.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The id of its first process. Locked while a signal is sent, so that the id is not reused meanwhile.
    first: Arc<Mutex<Option<Pid>>>,
}

/// A group that may still have processes. Drop kills them at once, because nothing is left to wait for them.
pub(crate) struct Members {
    child: Child,
    first: Pid,
    group: Group,
    /// Notifies that children have ended.
    children: Notice,
}

/// Starts a program in a group of its own.
pub(crate) fn start(program: Program, theirs: Theirs) -> io::Result<(Members, Group)> {
    let children = signal(SignalKind::child())?;
    let mut command = match program.input {
        InputKind::Descriptor3 => {
            let path = program.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
            let directory = program.directory.path();
            descriptor3::command(program.path.as_os_str(), path, directory.as_deref())?.into()
        }
        _ => Command::new(&program.path),
    };
    command.args(&program.args).env_clear().envs(&program.env).process_group(0);
    if let Some(directory) = program.directory.path() {
        command.current_dir(directory);
    }
    command.stdin(Stdio::from(theirs.stdin)).stdout(Stdio::from(theirs.stdout));
    command.stderr(Stdio::from(theirs.stderr));
    let child = kept_open::start(&mut command)?;
    let first = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let first = first.ok_or_else(|| io::Error::other("the program has no process id"))?;
    let group = Group { first: Arc::new(Mutex::new(Some(first))) };
    Ok((Members { child, first, group: group.clone(), children }, group))
}

impl Group {
    /// Kills all processes. Does nothing once they have ended.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(first) = *self.first.lock() {
            // An error means that the group is empty.
            let _ = kill_process_group(first, signal);
        }
    }

    /// No more signals are sent, so the first process may be reaped and the id reused.
    fn close(&self) {
        *self.first.lock() = None;
    }
}

impl Members {
    /// The process id of the program.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the program, and ends the rest. Dropping the future kills all.
    pub(crate) async fn watch(mut self, orders: Orders, progress: watch::Sender<Progress>) {
        progress.send_replace(Progress::Running);
        let end = self.ended(&orders).await;
        let left = self.has_living();
        if left && !orders.kill.is_cancelled() {
            self.group.signal(Signal::TERM);
            self.group.signal(Signal::CONT);
            tokio::select! {
                biased;
                () = orders.kill.cancelled() => {}
                () = self.end_within(TERM_GRACE) => {}
            }
        }
        if left {
            self.group.kill();
            self.end_within(KILL_GRACE).await;
        }
        let rest = Rest { left: usize::from(left), surviving: usize::from(self.has_living()) };
        self.group.close();
        // Reaps it; one that cannot be killed is reaped by the runtime, when it ends.
        let _ = self.child.try_wait();
        progress.send_replace(Progress::Ended(Report::Ran(Ran { end, rest: Some(rest), used: None })));
    }

    /// How the program itself ended; `None` if it has to be ended.
    async fn ended(&mut self, orders: &Orders) -> Option<End> {
        loop {
            if let First::Ended(end) = look_at(self.first) {
                return end;
            }
            tokio::select! {
                biased;
                () = orders.kill.cancelled() => return None,
                () = orders.terminate.cancelled() => return None,
                _ = self.children.recv() => {}
            }
        }
    }

    async fn end_within(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.has_living() && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether a process of the group is alive.
    fn has_living(&self) -> bool {
        matches!(look_at(self.first), First::Running) || is_alive(self.first)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.group.kill();
        self.group.close();
    }
}

/// The first process of a group.
enum First {
    Running,
    /// It has ended, which is how unless somebody else reaped it.
    Ended(Option<End>),
}

/// Looks at a process without reaping it.
fn look_at(first: Pid) -> First {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(first), look) {
        Ok(None) => First::Running,
        Ok(Some(status)) => First::Ended(end(&status)),
        Err(_) => First::Ended(None),
    }
}

fn end(status: &WaitIdStatus) -> Option<End> {
    let killed = status.terminating_signal().map(End::Killed);
    killed.or_else(|| status.exit_status().map(End::Exited))
}

/// Whether any process of a group is alive. A signal does not tell, because zombies accept it, too.
#[cfg(target_os = "linux")]
fn is_alive(group: Pid) -> bool {
    crate::descendants::has_living(group)
}

#[cfg(not(target_os = "linux"))]
fn is_alive(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::pipes;

    /// Whether a process is alive; `None` if it does not exist.
    fn state(pid: Pid) -> Option<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        Some(!stat.contains(") Z "))
    }

    /// SC-8: as long as signals may be sent to a group, its id is not reused, even if all of it is dead. After the end it
    /// is free.
    #[tokio::test]
    async fn a_dead_program_keeps_its_id_until_no_signal_is_sent() {
        let program = Program::new("/bin/sh").args(["-c", "exit 3"]);
        let (_ours, theirs) = pipes::open(&program).unwrap();
        let (members, group) = start(program, theirs).unwrap();
        let first = members.first;
        while state(first) == Some(true) {
            tokio::task::yield_now().await;
        }
        assert!(!members.has_living());
        group.kill();
        assert_eq!(state(first), Some(false), "it was reaped too early");
        let (progress, seen) = watch::channel(Progress::Starting);
        members.watch(Orders::default(), progress).await;
        let ran = Ran { end: Some(End::Exited(3)), rest: Some(Rest { left: 0, surviving: 0 }), used: None };
        assert!(matches!(&*seen.borrow(), Progress::Ended(Report::Ran(report)) if *report == ran));
        assert_eq!(state(first), None);
    }
}
