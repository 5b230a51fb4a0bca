//! A server's processes: the one that is started, in its own group with all that it starts.

use super::{
    environment,
    group::Group,
    stderr::{self, LastLines},
};
use crate::client::config::ServerConfig;
use std::{io, process::Stdio, time::Duration};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// How long a server may take to end after its input is closed.
pub(crate) const EXIT_GRACE: Duration = Duration::from_secs(5);

/// How long its processes may take to end after a signal.
const TERM_GRACE: Duration = Duration::from_secs(3);

/// How long to wait for the end of its standard error after it has ended.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// How often to check whether the group is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The descriptors from here on are not the three that a server is given.
#[cfg(unix)]
const FIRST_STRAY: i32 = 3;

/// A server's processes. Dropping this kills them at once.
pub(crate) struct Process {
    child: Child,
    group: Group,
    last_lines: LastLines,
    stderr_task: Option<JoinHandle<()>>,
}

/// Starts a server, whose processes are `group` from then on; returns its output and input as well.
pub(crate) fn start(config: &ServerConfig, group: &Group) -> io::Result<(Process, ChildStdout, ChildStdin)> {
    let mut command = Command::new(&config.command);
    command.args(&config.args).env_clear().envs(environment::inherited());
    command.envs(config.env.iter().map(|variable| (&variable.name, &variable.value.0)));
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    {
        command.process_group(0);
        // What this process was given or opened by accident is not for a server.
        close_fds::set_fds_cloexec_threadsafe(FIRST_STRAY, &[]);
    }
    let mut child = command.spawn()?;
    let no_pipe = || io::Error::other("a pipe to it is missing");
    let pipes = (child.stdout.take().ok_or_else(no_pipe)?, child.stdin.take().ok_or_else(no_pipe)?);
    let last_lines = LastLines::default();
    let read_stderr = |stderr| tokio::spawn(stderr::read(config.name.clone(), stderr, last_lines.clone()));
    let stderr_task = child.stderr.take().map(read_stderr);
    let group = group.clone();
    group.set(&child);
    Ok((Process { child, group, last_lines, stderr_task }, pipes.0, pipes.1))
}

impl Process {
    /// Ends the server and all that it started: with its input closed it has `grace` to end, then it is terminated,
    /// then killed. Returns how it ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills what is left.
    pub(crate) async fn end(mut self, grace: Duration) -> String {
        let ended_by_itself = self.wait_until(grace, |group, first| group.has_ended(first)).await;
        if self.group.has_living(&mut self.child) {
            self.group.terminate();
            self.exited_within(TERM_GRACE).await;
        }
        // Kills what is left, or was started during the checks.
        self.group.kill();
        self.exited_within(TERM_GRACE).await;
        self.group.clear();
        let status = timeout(TERM_GRACE, self.child.wait()).await.ok().and_then(Result::ok);
        let status = status.filter(|_| ended_by_itself);
        if let Some(stderr_task) = self.stderr_task.take() {
            // Its last lines may arrive a moment after its end. Other processes that hold the pipe are not waited for.
            let _ = timeout(STDERR_GRACE, stderr_task).await;
        }
        self.describe_end(status.map(|status| status.to_string()))
    }

    fn describe_end(&self, status: Option<String>) -> String {
        let status = status.unwrap_or_else(|| "it had to be terminated or killed".to_owned());
        match self.last_lines.explain() {
            None => status,
            Some(words) => format!("{status}; {words}"),
        }
    }

    async fn exited_within(&mut self, limit: Duration) -> bool {
        self.wait_until(limit, |group, first| !group.has_living(first)).await
    }

    /// Waits for a condition; returns whether it holds within this time.
    async fn wait_until(&mut self, limit: Duration, condition: impl Fn(&Group, &mut Child) -> bool) -> bool {
        let give_up_at = Instant::now() + limit;
        while !condition(&self.group, &mut self.child) {
            if Instant::now() >= give_up_at {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
        true
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill_now();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};

    /// Whether a process is alive; `None` if it does not exist.
    fn state(number: &str) -> Option<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        Some(!stat.contains(") Z "))
    }

    async fn until_dead(number: &str) {
        let waited = timeout(Duration::from_secs(30), async {
            while state(number) == Some(true) {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "{number} is alive after 30 s");
    }

    /// SC-8: as long as signals may be sent to a server's processes, their id is not reused, even if all of them are
    /// dead. After the end it is free.
    #[tokio::test]
    async fn a_dead_server_keeps_its_id_until_it_is_reaped() {
        let group = Group::default();
        let config = ServerConfig::new("s", "sh").args(["-c", "exit 3"]);
        let (mut process, ..) = start(&config, &group).unwrap();
        let number = process.child.id().unwrap().to_string();
        until_dead(&number).await;
        assert!(group.has_ended(&mut process.child) && !group.has_living(&mut process.child));
        group.terminate();
        assert_eq!(state(&number), Some(false), "it was reaped too early");
        assert_eq!(process.end(EXIT_GRACE).await, "exit status: 3");
        assert_eq!(state(&number), None);
    }

    /// A descriptor that any other child would inherit does not reach a server.
    #[tokio::test]
    async fn a_server_inherits_no_stray_descriptor() {
        use std::os::fd::AsRawFd;
        let stray = std::fs::File::open("/proc/self/stat").unwrap();
        let look = format!("test -e /proc/$$/fd/{} && echo stray || echo none", stray.as_raw_fd());
        let is_inherited = || {
            rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();
            std::process::Command::new("sh").args(["-c", &look]).output().unwrap().stdout == b"stray\n"
        };
        // A server that another test starts at this moment closes it to all children.
        assert!((0..100).any(|_| is_inherited()), "without this the test proves nothing");
        let config = ServerConfig::new("s", "sh").args(["-c", &look]);
        let (process, output, _input) = start(&config, &Group::default()).unwrap();
        let line = BufReader::new(output).lines().next_line().await.unwrap();
        assert_eq!(line.as_deref(), Some("none"));
        process.end(EXIT_GRACE).await;
    }

    /// SC-8: processes that a dead server leaves behind are ended.
    #[tokio::test]
    async fn what_a_dead_server_leaves_is_ended() {
        let group = Group::default();
        let config = ServerConfig::new("s", "sh").args(["-c", "sleep 600 & echo $!"]);
        let (mut process, output, _input) = start(&config, &group).unwrap();
        let left = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
        until_dead(&process.child.id().unwrap().to_string()).await;
        assert!(group.has_living(&mut process.child));
        assert_eq!(process.end(EXIT_GRACE).await, "exit status: 0");
        assert_ne!(state(&left), Some(true));
    }
}
