//! A server's processes: one that is started, in a group of its own with all that it starts.

use super::{
    config::ServerConfig,
    environment,
    group::Group,
    stderr::{self, LastWords},
};
use std::{io, process::Stdio, time::Duration};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// How long a server may take to end once its input has.
pub(super) const EXIT_GRACE: Duration = Duration::from_secs(5);

/// How long it may take once it was told to end.
const TERM_GRACE: Duration = Duration::from_secs(3);

/// How long its last words are waited for once it has ended.
const WORDS_GRACE: Duration = Duration::from_millis(200);

/// How often it is looked whether the group is gone.
const LOOK: Duration = Duration::from_millis(20);

/// A server's processes. Dropped, they are killed at once.
pub(super) struct Process {
    child: Child,
    group: Group,
    last_words: LastWords,
    listener: Option<JoinHandle<()>>,
}

/// Starts a server, whose processes are `group` from then on; its ends of the two pipes come beside it.
pub(super) fn start(config: &ServerConfig, group: &Group) -> io::Result<(Process, ChildStdout, ChildStdin)> {
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
    let listen = |stderr| tokio::spawn(stderr::read(config.name.clone(), stderr, last_words.clone()));
    let listener = child.stderr.take().map(listen);
    let group = group.clone();
    group.is(&child);
    Ok((Process { child, group, last_words, listener }, pipes.0, pipes.1))
}

impl Process {
    /// Ends it: it has had its input closed, and now has this time, then is told to end, then is killed; and so is all
    /// that it started. Tells how it ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills what is left.
    pub(super) async fn end(mut self, grace: Duration) -> String {
        let ended_by_itself = self.within(grace, |group, first| group.has_ended(first)).await;
        if self.group.is_there(&mut self.child) {
            self.group.terminate();
            self.gone_within(TERM_GRACE).await;
        }
        // Whoever is left, or was started while it was looked.
        self.group.kill();
        self.gone_within(TERM_GRACE).await;
        self.group.is_over();
        let status = timeout(TERM_GRACE, self.child.wait()).await.ok().and_then(Result::ok);
        let status = status.filter(|_| ended_by_itself);
        if let Some(listener) = self.listener.take() {
            // Its last words may be a moment behind its end; whoever else holds the pipe is not waited for.
            let _ = timeout(WORDS_GRACE, listener).await;
        }
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
        self.within(limit, |group, first| !group.is_there(first)).await
    }

    /// Whether something is so, at the latest after this time.
    async fn within(&mut self, limit: Duration, is_so: impl Fn(&Group, &mut Child) -> bool) -> bool {
        let give_up_at = Instant::now() + limit;
        while !is_so(&self.group, &mut self.child) {
            if Instant::now() >= give_up_at {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.end_at_once();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};

    /// Whether a process is alive; `None` for one that is not there at all.
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

    /// SC-8: as long as something may be sent to a server's processes their number is no other's, though all of them are
    /// dead; behind the end it is free.
    #[tokio::test]
    async fn a_dead_server_keeps_its_number_until_its_end() {
        let group = Group::default();
        let config = ServerConfig::new("s", "sh").args(["-c", "exit 3"]);
        let (mut process, ..) = start(&config, &group).unwrap();
        let number = process.child.id().unwrap().to_string();
        until_dead(&number).await;
        assert!(group.has_ended(&mut process.child) && !group.is_there(&mut process.child));
        group.terminate();
        assert_eq!(state(&number), Some(false), "it was buried before its time");
        assert_eq!(process.end(EXIT_GRACE).await, "exit status: 3");
        assert_eq!(state(&number), None);
    }

    /// SC-8: what a server leaves behind is ended, though the server is dead itself.
    #[tokio::test]
    async fn what_a_dead_server_leaves_is_ended() {
        let group = Group::default();
        let config = ServerConfig::new("s", "sh").args(["-c", "sleep 600 & echo $!"]);
        let (mut process, output, _input) = start(&config, &group).unwrap();
        let left = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
        until_dead(&process.child.id().unwrap().to_string()).await;
        assert!(group.is_there(&mut process.child));
        assert_eq!(process.end(EXIT_GRACE).await, "exit status: 0");
        assert_ne!(state(&left), Some(true));
    }
}
