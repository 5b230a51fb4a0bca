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
        self.group.is_over();
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

impl Drop for Process {
    fn drop(&mut self) {
        self.group.end_at_once();
    }
}
