//! A server's processes: one that is started, in a group of its own with all that it starts.

use super::{
    config::ServerConfig,
    environment,
    stderr::{self, LastWords},
};
use std::{io, process::Stdio, time::Duration};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};

/// How long a server may take to end once its input has.
pub(super) const EXIT_GRACE: Duration = Duration::from_secs(5);

/// How long it may take once it was told to end.
const TERM_GRACE: Duration = Duration::from_secs(3);

/// How often it is looked whether the group is gone.
const LOOK: Duration = Duration::from_millis(20);

/// A server's processes. Dropped, they are killed at once.
pub(super) struct Process {
    child: Child,
    group: Group,
    last_words: LastWords,
}

/// Starts a server; its ends of the two pipes come beside it.
pub(super) fn start(config: &ServerConfig) -> io::Result<(Process, ChildStdout, ChildStdin)> {
    let mut command = Command::new(&config.command);
    command.args(&config.args).env_clear().envs(environment::inherited());
    command.envs(config.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let no_pipe = || io::Error::other("a pipe to it is missing");
    let pipes = (child.stdout.take().ok_or_else(no_pipe)?, child.stdin.take().ok_or_else(no_pipe)?);
    let last_words = LastWords::default();
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(stderr::read(config.name.clone(), stderr, last_words.clone()));
    }
    let group = Group::of(&child);
    Ok((Process { child, group, last_words }, pipes.0, pipes.1))
}

impl Process {
    /// Ends it: it has had its input closed, and now has this time, then is told to end, then is killed; and so is all
    /// that it started. Tells how it ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills what is left.
    pub(super) async fn end(mut self, grace: Duration) -> String {
        let status = match timeout(grace, self.child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => None,
        };
        if self.group.is_there(&mut self.child) {
            self.group.terminate();
            if !self.gone_within(TERM_GRACE).await {
                self.group.kill();
                self.gone_within(TERM_GRACE).await;
            }
        }
        self.group.is_over = true;
        // The reader of its last words may be a moment behind its end.
        tokio::task::yield_now().await;
        self.how_it_ended(status.map(|status| status.to_string()))
    }

    fn how_it_ended(&self, status: Option<String>) -> String {
        let status = status.unwrap_or_else(|| "it did not end by itself".to_owned());
        match self.last_words.get() {
            words if words.is_empty() => status,
            words => format!("{status}; it last said: {words}"),
        }
    }

    async fn gone_within(&mut self, limit: Duration) -> bool {
        let give_up_at = Instant::now() + limit;
        while self.group.is_there(&mut self.child) {
            if Instant::now() >= give_up_at {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }
}

/// A process and all that it started.
struct Group {
    #[cfg(unix)]
    pid: Option<rustix::process::Pid>,
    /// All has been done: its number may be another's by now.
    is_over: bool,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
        Self { pid, is_over: false }
    }

    /// Whether a process of it is there. The first of them counts until it is buried.
    fn is_there(&self, child: &mut Child) -> bool {
        let _ = child.try_wait();
        self.pid.is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
        self.signal(rustix::process::Signal::CONT);
    }

    fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = self.pid {
            // An empty group needs none.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill();
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self { is_over: false }
    }

    /// Whether the process is there; what it started is not known.
    fn is_there(&self, child: &mut Child) -> bool {
        let is_there = matches!(child.try_wait(), Ok(None));
        if is_there {
            let _ = child.start_kill();
        }
        is_there
    }

    fn terminate(&self) {}

    fn kill(&self) {}
}
