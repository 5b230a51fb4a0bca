//! A server that dies again and again, on a clock that moves only when the test lets it, while the processes are real.

use crate::client::{
    log::Log,
    server::{odd, odd_at},
    yard::Yard,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::json;
use std::{
    env, fs,
    os::unix::fs::symlink,
    process,
    sync::mpsc::{Sender, channel},
    time::Duration,
};
use tokio::{
    task::{JoinHandle, spawn_blocking, yield_now},
    time::{Instant, advance, pause, resume, sleep, sleep_until, timeout},
};
use toolyard::{BreakerPolicy, Effect, ErrorKind, RetryPolicy};
use toolyard_mcp::ServerState;

/// The waits before a server is restarted.
const WAITS_MS: [u64; 5] = [250, 1000, 4000, 16_000, 30_000];

/// The same waits as they are logged.
const WAITS: [&str; 5] = ["250ms", "1s", "4s", "16s", "30s"];

/// More than the time between two checks of a process that is to end.
const LOOKS: Duration = Duration::from_millis(50);

/// A variable in the server's environment by which its process is found: it holds the id of this process.
const MARK: &str = "ODD_MARK";

/// While this exists, the paused clock stands still and the real world goes on, because a blocking task keeps tokio
/// from advancing it. When dropped, the clock advances to the next timer as soon as there is nothing else to do.
struct Still {
    task: JoinHandle<()>,
    _end: Sender<()>,
}

impl Still {
    fn hold() -> Self {
        let (_end, ended) = channel::<()>();
        // Long enough: what has not happened by then never will.
        let task = spawn_blocking(move || ended.recv_timeout(Duration::from_secs(30)).unwrap_or_default());
        Self { task, _end }
    }

    /// Waits until this has happened in the real world.
    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        while !is_so() {
            assert!(!self.task.is_finished(), "{what}: not within 30 s");
            yield_now().await;
        }
    }
}

/// The server's process, if it is alive. It is found as soon as it is started.
fn alive() -> Option<Pid> {
    let number = |dir: fs::DirEntry| dir.file_name().to_str()?.parse().ok();
    let mut numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(number);
    let mark = format!("{MARK}={}", process::id());
    // Dead processes and those of other users cannot be read.
    let is_it = |number: &i32| {
        let has = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        has.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    numbers.find(is_it).and_then(Pid::from_raw)
}

/// Whether a process has ended, reaped or not.
fn has_ended(process: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(process), look), Ok(None))
}

/// The waits that were logged so far.
fn waits(log: &Log) -> Vec<String> {
    let lines = log.of("s", "an MCP server ended and will be restarted");
    lines.iter().map(|line| line.get("wait").to_owned()).collect()
}

/// The log message when a server is not restarted any more.
const GIVEN_UP: &str = "an MCP server died too often and was given up";

struct Dying {
    yard: Yard,
    log: Log,
}

impl Dying {
    fn state(&self) -> ServerState {
        self.yard.servers.status().remove(0).state
    }

    /// Kills the server, and waits until that has been noticed.
    async fn kill(&self, still: &Still) {
        let process = alive().unwrap();
        kill_process(process, Signal::KILL).unwrap();
        still.until("it has ended", || has_ended(process)).await;
        // Makes the periodic check of the process run again.
        advance(LOOKS).await;
        let is_over = || match self.state() {
            ServerState::Down { why } | ServerState::GivenUp { why } => why.contains("SIGKILL"),
            _ => false,
        };
        still.until("its death is reported", is_over).await;
    }

    /// The error that a call gets now, and when it says to retry.
    async fn failure(&self) -> (String, Option<Duration>) {
        let error = self.yard.call("s__hang", json!({})).await.status.unwrap_err();
        assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Failed), "{error:?}");
        (error.message, error.retry_after)
    }
}

/// V4, V5: a server that dies is restarted after growing waits, never earlier. After six deaths in a row it is given
/// up, and calls say so until the operator restarts it, which resets the count.
#[tokio::test]
async fn a_server_that_dies_is_started_again_after_waits_that_grow() {
    let (log, _listening) = Log::listen();
    let servers = vec![odd("s", "plain").env(MARK, process::id().to_string())];
    // One attempt, so that calls report what they find.
    let once = RetryPolicy::default().with_max_attempts(1);
    let yard = Yard::built(servers, |engine| engine.retry(once).breaker(BreakerPolicy::DISABLED)).await;
    pause();
    let mut still = Still::hold();
    let server = Dying { yard, log };
    for wait in WAITS_MS.map(Duration::from_millis) {
        server.kill(&still).await;
        let died = Instant::now();
        let (message, retry_after) = server.failure().await;
        assert!(message.contains("it is being restarted: ") && message.contains("SIGKILL"), "{message}");
        assert_eq!(retry_after, Some(wait));

        drop(still);
        sleep_until(died + wait - Duration::from_millis(5)).await;
        still = Still::hold();
        assert_eq!((alive(), died.elapsed() < wait), (None, true), "it was started too early");
        drop(still);
        sleep_until(died + wait).await;
        still = Still::hold();
        still.until("it is started again", || alive().is_some()).await;
        still.until("it takes calls", || server.state() == ServerState::Ready).await;
    }
    assert_eq!(waits(&server.log), WAITS);

    server.kill(&still).await;
    assert!(matches!(server.state(), ServerState::GivenUp { .. }));
    let (message, retry_after) = server.failure().await;
    assert!(message.contains("the server 's' is not available: it was given up: "), "{message}");
    assert!(message.contains("SIGKILL") && retry_after.is_none(), "{message}");
    drop(still);
    sleep(Duration::from_secs(3600)).await;
    still = Still::hold();
    // Anything that was started since has died, and its death was logged.
    assert_eq!((alive(), server.log.of("s", GIVEN_UP).len()), (None, 1), "it was given up");

    server.yard.servers.restart("s").await.unwrap();
    assert_eq!(server.yard.text("s__echo", json!({"text": "x"})).await, "x");
    server.kill(&still).await;
    assert_eq!(waits(&server.log)[WAITS.len()..], WAITS[..1]);
    drop(still);
    resume();
    server.yard.servers.shutdown().await;
}

/// A start that fails counts as a death: a missing program is tried again after the same waits, and the operator can
/// start it once it is back.
#[tokio::test]
async fn a_server_that_cannot_be_started_again_is_given_up() {
    let (log, _listening) = Log::listen();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("server");
    let put = || symlink(env::current_exe().unwrap(), &program).unwrap();
    put();
    let yard = Yard::open(vec![odd_at(&program, "s", "plain")]).await;
    fs::remove_file(&program).unwrap();
    assert_eq!(yard.call("s__die", json!({})).await.attempts, 1);
    yard.until("its death is reported", |_| !waits(&log).is_empty()).await;
    // The server died a moment ago, and the first waits may already have started.
    pause();
    let paused = Instant::now();
    timeout(Duration::from_secs(3600), yard.servers.settled()).await.unwrap();
    let took = paused.elapsed();
    let [.., last] = WAITS_MS;
    let most = Duration::from_millis(WAITS_MS.iter().sum()) + LOOKS;
    assert!(took >= Duration::from_millis(last) && took <= most, "{took:?}");
    assert_eq!((waits(&log), log.of("s", GIVEN_UP).len()), (WAITS.map(str::to_owned).to_vec(), 1));
    let ServerState::GivenUp { why } = yard.servers.status().remove(0).state else {
        panic!("it is not given up")
    };
    assert!(why.contains("cannot be started: No such file"), "{why}");
    resume();

    put();
    yard.servers.restart("s").await.unwrap();
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}
