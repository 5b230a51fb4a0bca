//! A server's processes: the one that is started, with all that it starts.

#[cfg(target_os = "linux")]
use super::confined;
use super::{
    environment,
    running::Running,
    stderr::{self, LastLines},
};
use crate::client::config::ServerConfig;
use std::{io, time::Duration};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use toolyard_process::{End, Input, Output, Processes, Program, Ran, Report};

/// How long a server may take to end after its input is closed.
pub(crate) const EXIT_GRACE: Duration = Duration::from_secs(5);

/// How long to wait for the end of its standard error after it has ended.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// The name of its helper in process lists.
const HELPER_NAME: &str = "toolyard-mcp";

/// A server's processes. Dropping this kills them at once.
pub(crate) struct Process {
    processes: Processes,
    running: Running,
    last_lines: LastLines,
    stderr_task: Option<JoinHandle<()>>,
    /// Serves its way out as long as it lives.
    _way_out: Option<AbortOnDropHandle<()>>,
}

/// Starts a server, whose processes are `running` from then on; returns its output and input as well.
///
/// # Cancel safety
/// Dropping the future kills what was started.
pub(crate) async fn start(config: &ServerConfig, running: &Running) -> io::Result<(Process, Output, Input)> {
    let started = program(config)?.start(&config.containment)?;
    running.set(started.processes.killer());
    let last_lines = LastLines::default();
    let read_stderr = |stderr| tokio::spawn(stderr::read(config.name.clone(), stderr, last_lines.clone()));
    let stderr_task = started.stderr.map(read_stderr);
    let running = running.clone();
    let mut process =
        Process { processes: started.processes, running, last_lines, stderr_task, _way_out: None };
    process.processes.started().await.map_err(|why| match config.confinement {
        Some(_) => {
            io::Error::other(format!("{why}; it reaches the system, its program and its files, and no more"))
        }
        None => io::Error::other(why),
    })?;
    #[cfg(target_os = "linux")]
    if let Some((door, given)) = started.door.zip(config.confinement.as_ref()) {
        process._way_out = Some(confined::serve(door, config.name(), given).await?);
    }
    let input = started.stdin.ok_or_else(|| io::Error::other("a pipe to it is missing"))?;
    Ok((process, started.stdout, input))
}

fn program(config: &ServerConfig) -> io::Result<Program> {
    let program = match &config.confinement {
        None => unconfined(config),
        #[cfg(target_os = "linux")]
        Some(given) => confined::program(config, given)?,
        #[cfg(not(target_os = "linux"))]
        Some(_) => {
            let why = "servers are confined on Linux alone";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    };
    let variables = config.env.iter().map(|variable| (&variable.name, &variable.value.0));
    Ok(program.args(&config.args).envs(variables).piped_input().errors_apart().helper_name(HELPER_NAME))
}

fn unconfined(config: &ServerConfig) -> Program {
    let program = Program::new(&config.command).envs(environment::inherited());
    match &config.cwd {
        Some(cwd) => program.directory(cwd),
        None => program,
    }
}

impl Process {
    /// Ends the server and all that it started: with its input closed it has `grace` to end, then it is terminated,
    /// then killed. Returns how it ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills what is left.
    pub(crate) async fn end(mut self, grace: Duration) -> String {
        let report = match timeout(grace, self.processes.ended()).await {
            Ok(report) => report,
            Err(_) => {
                self.processes.terminate();
                self.processes.ended().await
            }
        };
        if let Some(stderr_task) = self.stderr_task.take() {
            // Its last lines may arrive a moment after its end. Other processes that hold the pipe are not waited for.
            let _ = timeout(STDERR_GRACE, stderr_task).await;
        }
        let end = match report {
            Report::Ran(Ran { end: Some(End::Limit(limit)), .. }) => {
                format!("it ran into its limit of {limit}")
            }
            Report::Ran(Ran { end: Some(end), .. }) => end.to_string(),
            Report::Ran(Ran { end: None, .. }) => "it had to be terminated or killed".to_owned(),
            Report::NotStarted(why) => why.to_string(),
        };
        match self.last_lines.explain() {
            None => end,
            Some(words) => format!("{end}; {words}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.processes.kill();
        self.running.clear();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};

    /// Whether a process is alive.
    fn is_alive(number: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn until_dead(number: &str) {
        let waited = timeout(Duration::from_secs(30), async {
            while is_alive(number) {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "{number} is alive after 30 s");
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
        let (process, output, _input) = start(&config, &Running::default()).await.unwrap();
        let line = BufReader::new(output).lines().next_line().await.unwrap();
        assert_eq!(line.as_deref(), Some("none"));
        process.end(EXIT_GRACE).await;
    }

    /// SC-8: processes that a dead server leaves behind are ended.
    #[tokio::test]
    async fn what_a_dead_server_leaves_is_ended() {
        let config = ServerConfig::new("s", "sh").args(["-c", "sleep 600 & echo $!; exit 3"]);
        let (process, output, _input) = start(&config, &Running::default()).await.unwrap();
        let left = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
        assert_eq!(process.end(EXIT_GRACE).await, "exit status: 3");
        assert!(!is_alive(&left));
    }

    /// SC-8: a server has its grace to end by itself, and is terminated then.
    #[tokio::test]
    async fn a_server_ends_by_itself_or_is_terminated() {
        let said = "trap 'echo asked to >&2; exit 0' TERM; echo ready; read line";
        let terminated = "it had to be terminated or killed; on stderr: asked to";
        for (then, grace, expect) in [
            ("exit 4", EXIT_GRACE, "exit status: 4"),
            ("kill -9 $$", EXIT_GRACE, "signal: 9 (SIGKILL)"),
            ("sleep 600 & wait", Duration::ZERO, terminated),
        ] {
            let config = ServerConfig::new("s", "sh").args(["-c".to_owned(), format!("{said}; {then}")]);
            let (process, output, input) = start(&config, &Running::default()).await.unwrap();
            let ready = BufReader::new(output).lines().next_line().await.unwrap();
            assert_eq!(ready.as_deref(), Some("ready"));
            drop(input);
            assert_eq!(process.end(grace).await, expect);
        }
    }

    /// SC-8: whoever drops a server, or kills it from elsewhere, leaves nothing of it.
    #[tokio::test]
    async fn a_server_that_is_dropped_is_killed() {
        for is_dropped in [true, false] {
            let running = Running::default();
            let config = ServerConfig::new("s", "sh").args(["-c", "trap '' TERM; sleep 600 & echo $!; wait"]);
            let (process, output, _input) = start(&config, &running).await.unwrap();
            let left = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
            assert!(is_alive(&left));
            if is_dropped {
                drop(process);
            } else {
                running.kill();
            }
            until_dead(&left).await;
        }
    }
}
