//! What holds for every server: it is listed, called, cancelled, killed during a call, and called many times at once.

use crate::real::{
    place,
    process::{Process, noted},
    yard::Yard,
};
use serde_json::{Value, json};
use std::{fmt::Write, fs, path::Path, time::Duration};
use tempfile::TempDir;
use toolyard::{BreakerPolicy, Call, Effect, ErrorKind, Outcome, RetryPolicy, Session, SideEffects};

/// How many calls are made at once.
const AT_ONCE: usize = 64;

/// A third-party server, and what is known of it.
struct Case {
    /// The command that starts it.
    words: Vec<String>,
    env: Vec<(&'static str, String)>,
    /// The tools it has to list. The first one, which only reads, is called here.
    tools: &'static [&'static str],
    /// The arguments of the n-th call.
    args: Box<dyn Fn(usize) -> Value>,
    /// A text that is in the answer to that call, and in no other.
    says: fn(usize) -> String,
    /// The directory it works on.
    dir: TempDir,
}

impl Case {
    fn path(dir: &TempDir) -> String {
        dir.path().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    fn call(&self, server: &str, n: usize) -> Call {
        Call::new(n.to_string(), format!("{server}__{}", self.tools[0]), (self.args)(n))
    }

    #[track_caller]
    fn check_answered(&self, outcome: Outcome, n: usize) {
        let said = outcome.status.unwrap().to_text();
        assert!(said.contains(&(self.says)(n)), "{n}: {said}");
    }
}

/// One server twice: trusted, so that the tool that is called counts as one that reads, and untrusted, so that it
/// counts as one that may do anything.
struct Both {
    case: Case,
    yard: Yard,
    believed: Process,
    other: Process,
}

impl Both {
    async fn open(case: Case) -> Self {
        let start = |name| {
            let (config, process) = noted(name, &case.words, case.dir.path());
            (case.env.iter().fold(config, |config, (name, value)| config.env(*name, value)), process)
        };
        let ((one, believed), (two, other)) = (start("believed"), start("other"));
        // Spread over seconds, so that a server that starts slowly is ready before the last attempt.
        let retry = RetryPolicy::default().with_max_attempts(9);
        let retry = retry.with_delays(Duration::from_secs(1), 1.5, Duration::from_secs(10));
        let yard = Yard::built(vec![one.trusted(true), two], |builder| {
            builder.retry(retry).breaker(BreakerPolicy::DISABLED)
        });
        let yard = yard.await;
        Self { case, yard, believed, other }
    }

    async fn answers(&self, server: &str, n: usize) {
        let outcome = self.yard.all(vec![self.case.call(server, n)]).await.remove(0);
        self.case.check_answered(outcome, n);
    }

    /// CL-1: all tools are listed, and what they do is the server's word only if it is trusted.
    fn lists(&self) {
        let names = self.yard.names();
        for tool in self.case.tools {
            for server in ["believed", "other"] {
                assert!(names.contains(&format!("{server}__{tool}")), "{server}, {tool}: {names:?}");
            }
        }
        let tool = self.case.tools[0];
        let effects = |server| {
            let entry = self.yard.engine.registry().get(&format!("{server}__{tool}")).unwrap();
            entry.spec().side_effects
        };
        assert_eq!((effects("believed"), effects("other")), (SideEffects::Read, SideEffects::Execute));
    }

    /// Makes a call while its server is stopped, and runs `then` once the call is certainly in the server's pipe.
    async fn in_mid_call(
        &self,
        server: &str,
        process: &Process,
        then: impl AsyncFnOnce(&Session),
    ) -> Outcome {
        process.stop();
        self.yard.until("the server is stopped", |_| process.is_stopped()).await;
        let session = self.yard.engine.session("t");
        let (call, unread) = (self.case.call(server, 1), process.unread());
        // Less than the call's line, and more than the line of a list request, which a changed list may cause.
        let least =
            json!({"method": "tools/call", "name": self.case.tools[0], "arguments": (self.case.args)(1)});
        let least = unread + least.to_string().len() as u64;
        let met = async {
            self.yard.until("the call is in its pipe", |_| process.unread() > least).await;
            then(&session).await;
        };
        tokio::join!(session.call(call), met).0
    }

    /// SC-4: a cancelled call ends even though its server does not notice. When the server continues, it finds both the
    /// call and the cancellation, and answers what comes next.
    async fn survives_a_cancel(&self, server: &str, process: &Process) {
        let number = process.number();
        let outcome = self.in_mid_call(server, process, async |session| {
            let call = process.unread();
            session.cancel_calls();
            self.yard.until("the call is written to it", |_| process.unread() > call).await;
        });
        let error = outcome.await.status.unwrap_err();
        assert_eq!((error.kind, error.effect), (ErrorKind::Cancelled, Effect::Unknown), "{error:?}");
        process.go_on();
        self.answers(server, 2).await;
        assert_eq!(process.number(), number, "it lives on");
    }

    /// V4, V5: a call that may have done anything has an unknown outcome and is not made again; the server is
    /// restarted.
    async fn check_lost_in_mid_call(&self) {
        let outcome = self.in_mid_call("other", &self.other, async |_| self.other.kill()).await;
        assert_eq!(outcome.attempts, 1);
        let error = outcome.status.unwrap_err();
        let failure = (error.kind, error.effect, error.retryable);
        assert_eq!(failure, (ErrorKind::Transient, Effect::Unknown, false), "{error:?}");
        self.answers("believed", 3).await;
        self.yard.servers.settled().await;
        self.answers("other", 4).await;
    }

    /// RT-1: a call that only reads is made again, and answered by the restarted server.
    async fn reads_again(&self) {
        let number = self.believed.number();
        let outcome = self.in_mid_call("believed", &self.believed, async |_| self.believed.kill()).await;
        assert!(outcome.attempts > 1);
        self.case.check_answered(outcome, 1);
        assert_ne!(self.believed.number(), number);
    }

    /// CL-1, CL-4: each of many calls gets its own answer.
    async fn answers_many_at_once(&self) {
        let calls = (0..AT_ONCE).map(|n| self.case.call("believed", n)).collect();
        for (n, outcome) in self.yard.all(calls).await.into_iter().enumerate() {
            self.case.check_answered(outcome, n);
        }
    }
}

async fn prove(case: Option<Case>) {
    let Some(case) = case else { return };
    let both = Both::open(case).await;
    both.lists();
    both.answers("believed", 0).await;
    both.survives_a_cancel("believed", &both.believed).await;
    both.survives_a_cancel("other", &both.other).await;
    both.check_lost_in_mid_call().await;
    both.reads_again().await;
    both.answers_many_at_once().await;
    both.yard.servers.shutdown().await;
}

fn node(name: &str, args: &[&str]) -> Option<Vec<String>> {
    let words = ["node".to_owned(), place::script(name)?];
    Some(words.into_iter().chain(args.iter().map(ToString::to_string)).collect())
}

fn python(name: &str, args: &[&str]) -> Option<Vec<String>> {
    Some(std::iter::once(place::program(name)?).chain(args.iter().map(ToString::to_string)).collect())
}

#[tokio::test]
async fn filesystem() {
    prove(files()).await;
}

fn files() -> Option<Case> {
    let dir = tempfile::tempdir().unwrap();
    let root = Case::path(&dir);
    let says = |n| format!("what is in file {n:02}");
    (0..AT_ONCE).for_each(|n| fs::write(dir.path().join(n.to_string()), says(n)).unwrap());
    Some(Case {
        words: node("filesystem", &[&root])?,
        env: Vec::new(),
        tools: &["read_text_file", "write_file", "edit_file", "move_file", "list_directory", "search_files"],
        args: Box::new(move |n| json!({"path": format!("{root}/{n}")})),
        says,
        dir,
    })
}

#[tokio::test]
async fn everything() {
    prove(all_sorts()).await;
}

fn all_sorts() -> Option<Case> {
    Some(Case {
        words: node("everything", &["stdio"])?,
        env: Vec::new(),
        tools: &[
            "echo",
            "get-sum",
            "get-tiny-image",
            "get-structured-content",
            "trigger-long-running-operation",
        ],
        args: Box::new(|n| json!({"message": format!("number {n:02}")})),
        says: |n| format!("Echo: number {n:02}"),
        dir: tempfile::tempdir().unwrap(),
    })
}

#[tokio::test]
async fn memory() {
    prove(graph()).await;
}

fn graph() -> Option<Case> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("graph.jsonl");
    let says = |n| format!("what is known of {n:02}");
    let entity = |n| json!({"type": "entity", "name": format!("e{n}"), "entityType": "thing", "observations": [says(n)]});
    let lines: Vec<String> = (0..AT_ONCE).map(|n| entity(n).to_string()).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    Some(Case {
        words: node("memory", &[])?,
        env: vec![("MEMORY_FILE_PATH", file.to_str().unwrap().to_owned())],
        tools: &["open_nodes", "create_entities", "delete_entities", "read_graph", "search_nodes"],
        args: Box::new(|n| json!({"names": [format!("e{n}")]})),
        says,
        dir,
    })
}

#[tokio::test]
async fn git() {
    prove(repository()).await;
}

fn repository() -> Option<Case> {
    let dir = tempfile::tempdir().unwrap();
    let root = Case::path(&dir);
    let words = python("git", &["--repository", &root])?;
    let says = |n| format!("commit number {n:02}");
    commit(dir.path(), says);
    Some(Case {
        words,
        env: Vec::new(),
        tools: &["git_show", "git_status", "git_add", "git_commit", "git_log", "git_checkout", "git_reset"],
        args: Box::new(move |n| json!({"repo_path": root, "revision": format!("HEAD~{}", AT_ONCE - 1 - n)})),
        says,
        dir,
    })
}

/// Makes a repository with one commit for each call.
fn commit(dir: &Path, subject: fn(usize) -> String) {
    let mut commits = String::new();
    for n in 0..AT_ONCE {
        let subject = subject(n);
        let head = "commit refs/heads/main\ncommitter Test <test@example.com>";
        writeln!(commits, "{head} {n} +0000\ndata {}\n{subject}", subject.len()).unwrap();
    }
    fs::write(dir.join("commits"), commits).unwrap();
    let line = "git init --quiet --initial-branch=main && git fast-import --quiet < commits";
    let made = std::process::Command::new("sh").args(["-c", line]).current_dir(dir).status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn time() {
    prove(clock()).await;
}

fn clock() -> Option<Case> {
    Some(Case {
        words: python("time", &[])?,
        env: Vec::new(),
        tools: &["convert_time", "get_current_time"],
        args: Box::new(|n| {
            let time = format!("{:02}:{:02}", n / 60, n % 60);
            json!({"source_timezone": "UTC", "time": time, "target_timezone": "Asia/Tokyo"})
        }),
        says: |n| format!("T{:02}:{:02}:00+09:00", 9 + n / 60, n % 60),
        dir: tempfile::tempdir().unwrap(),
    })
}
