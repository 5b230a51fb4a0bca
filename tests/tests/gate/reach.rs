//! SM-2: what a call may touch where it runs.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolyard::{
    Backend, Call, Capabilities, Effect, ErrorKind, Execution, ForkPolicy, Form, FsGrant, FsMode, Host,
    Opened, Outcome, Running, SandboxError, Session, SessionOptions, SideEffects, Stopped, Tool, ToolFactory,
    ToolSpec, Work,
};
use toolyard_tests::{Yard, scripted, yard};
use toolyard_tools::Workspace;

/// A scripted tool that is a program.
struct Program<F>(F);

impl<F: ToolFactory> ToolFactory for Program<F> {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.0.create()
    }

    fn forms(&self) -> &[Form] {
        &[Form::Command]
    }
}

/// A sandbox that opens what a call may touch, and notes it.
#[derive(Default)]
struct Opens(Mutex<Vec<String>>);

impl Backend for Opens {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let reach = execution.reach()?;
        for path in reach.open()? {
            let mode = json!(path.of.mode);
            let opened = match path.opened {
                Opened::Directory(_) => "directory".to_owned(),
                Opened::File(file) => format!("file {}", std::io::read_to_string(file).unwrap()),
                Opened::Missing { name, .. } => format!("missing {}", name.display()),
                other => format!("{other:?}"),
            };
            let line = format!("{} {}: {opened}", mode.as_str().unwrap(), path.of.path.display());
            self.0.lock().unwrap().push(line);
        }
        for host in ["api.example.com", "evil.example"] {
            let parsed = Host::parse(host).unwrap();
            let apart = reach.hosts().is_some_and(|hosts| hosts.covers(&parsed));
            assert_eq!(reach.host(&parsed), apart, "{host}");
            if apart {
                self.0.lock().unwrap().push(host.to_owned());
            }
        }
        let result = execution.tool.execute(execution.args, &execution.cx);
        Ok(Running { result: Work::Handler(result), stopped: Stopped::WhenDropped })
    }
}

struct Desk {
    yard: Yard,
    opens: Arc<Opens>,
    root: tempfile::TempDir,
}

impl Desk {
    /// A workspace with `docs/a.md`, `out/` and, on Unix, a link from `docs/in` to `out`; and a program for each kind of
    /// side effects, which does not say what it touches. `look` and `edit` do.
    async fn open() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["docs", "out"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        std::fs::write(root.path().join("docs/a.md"), "text").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../out", root.path().join("docs/in")).unwrap();
        let opens = Arc::new(Opens::default());
        let yard = yard(|builder, log| {
            let program = |spec| Program(scripted(spec, log));
            let all = SideEffects::ALL.map(|effects| ToolSpec::new(format!("{effects:?}"), effects));
            let builder = all.into_iter().fold(builder, |builder, spec| builder.tool(program(spec)));
            builder
                .tool(program(ToolSpec::read("look").requires_fs(FsMode::Read, "path")))
                .tool(program(ToolSpec::write("edit").requires_fs(FsMode::ReadWrite, "path")))
                .backend(opens.clone())
        })
        .await;
        Self { yard, opens, root }
    }

    fn session(&self, name: &str, capabilities: Capabilities) -> Session {
        let workspace = Arc::new(Workspace::open(self.root.path()).unwrap());
        let options = SessionOptions::default().workspace(workspace).capabilities(capabilities);
        self.yard.engine.session_with(name, options)
    }

    /// What a call of this tool reached, and how it ended.
    async fn call(&self, session: &Session, tool: &str, args: Value) -> (Vec<String>, Outcome) {
        let outcome = session.call(Call::new("c", tool, args)).await;
        (std::mem::take(&mut self.opens.0.lock().unwrap()), outcome)
    }

    /// What a call that succeeds reached.
    async fn reached(&self, session: &Session, tool: &str, args: Value) -> Vec<String> {
        let (reached, outcome) = self.call(session, tool, args).await;
        assert!(outcome.success(), "{outcome:?}");
        reached
    }
}

fn fs(grants: &[(FsMode, &str)]) -> Capabilities {
    Capabilities::default().fs(grants.iter().map(|(mode, path)| FsGrant::new(*mode, path).unwrap()))
}

/// SM-2: tools that write or execute may write, all others only read; without bounds that is the whole workspace, and no
/// host.
#[tokio::test(start_paused = true)]
async fn only_tools_that_write_or_execute_may_write() {
    let desk = Desk::open().await;
    let session = desk.session("s", Capabilities::default());
    for (tool, expected) in [
        ("None", "r .: directory"),
        ("Read", "r .: directory"),
        ("Write", "rw .: directory"),
        ("Execute", "rw .: directory"),
        ("Network", "r .: directory"),
    ] {
        assert_eq!(desk.reached(&session, tool, json!({})).await, [expected], "{tool}");
    }
}

/// SM-2, CL-7: a call reaches what its agent and every agent above it may use.
#[tokio::test(start_paused = true)]
async fn a_call_reaches_what_all_agents_above_it_may_use() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::Read, "docs"), (FsMode::ReadWrite, "out")]));
    let all = ["r docs: directory", "rw out: directory"];
    assert_eq!(desk.reached(&session, "Write", json!({})).await, all);
    assert_eq!(desk.reached(&session, "Read", json!({})).await, ["r docs: directory", "r out: directory"]);
    let narrow = fs(&[(FsMode::ReadWrite, "docs/a.md"), (FsMode::Read, "out")]);
    let fork = session.fork(ForkPolicy::default().capabilities(narrow)).unwrap();
    let both = ["r docs/a.md: file text", "r out: directory"];
    assert_eq!(desk.reached(&fork, "Execute", json!({})).await, both);
}

/// SM-2: a call reaches no more than it says it touches; one that leaves the choice to its tool, all it may.
#[tokio::test(start_paused = true)]
async fn a_call_reaches_no_more_than_it_declares() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::Read, "docs"), (FsMode::ReadWrite, "out")]));
    let args = json!({"path": ["docs/a.md", "out/../out"]});
    assert_eq!(
        desk.reached(&session, "look", args.clone()).await,
        ["r docs/a.md: file text", "r out: directory"]
    );
    assert_eq!(desk.reached(&session, "edit", json!({"path": "out/new"})).await, ["rw out/new: missing new"]);
    let whole = desk.session("whole", Capabilities::default());
    assert_eq!(desk.reached(&whole, "edit", json!({})).await, ["rw .: directory"]);
}

/// SM-2: a granted path that does not exist is its nearest directory, for that name alone.
#[tokio::test(start_paused = true)]
async fn a_path_that_does_not_exist_is_a_name_in_its_nearest_directory() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::ReadWrite, "out/a/b"), (FsMode::Read, "none")]));
    assert_eq!(
        desk.reached(&session, "Write", json!({})).await,
        ["r none: missing none", "rw out/a/b: missing a/b"]
    );
}

/// SM-2: what cannot be opened ends the call before it starts.
#[tokio::test(start_paused = true)]
async fn a_path_that_cannot_be_opened_is_a_sandbox_error() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::Read, "docs/a.md/x")]));
    let (reached, outcome) = desk.call(&session, "Read", json!({})).await;
    assert_eq!(reached, Vec::<String>::new());
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, error.effect), (ErrorKind::SandboxError, Effect::NotStarted));
    let message = "sandbox 'process' cannot be given 'docs/a.md/x', not a directory: the call was not run";
    assert_eq!(error.message, message);
    assert_eq!(desk.yard.log.started(), Vec::<String>::new());
}

/// SM-2, PO-1b: a granted name that is a link grants nothing, and a path that leads through one is what it leads to.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_granted_link_grants_nothing() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::ReadWrite, "docs/in"), (FsMode::Read, "docs/a.md")]));
    assert_eq!(desk.reached(&session, "Write", json!({})).await, ["r docs/a.md: file text"]);
    let whole = desk.session("whole", Capabilities::default());
    assert_eq!(desk.reached(&whole, "edit", json!({"path": "docs/in/x"})).await, ["rw out/x: missing x"]);
}

/// SM-2: a call reaches the hosts that somebody has granted and nobody above leaves out. What a call with granted
/// hosts touches is more than the paths it declares.
#[tokio::test(start_paused = true)]
async fn a_call_reaches_the_hosts_that_are_granted() {
    let desk = Desk::open().await;
    let net = |patterns: &[&str]| {
        fs(&[(FsMode::Read, "docs")]).net(patterns.iter().map(|pattern| pattern.parse().unwrap()))
    };
    let session = desk.session("s", net(&["*.example.com", "evil.example"]));
    let docs = "r docs: directory";
    assert_eq!(desk.reached(&session, "Read", json!({})).await, [docs, "api.example.com", "evil.example"]);
    let looks = desk.reached(&session, "look", json!({"path": "docs/a.md"})).await;
    assert_eq!(looks, [docs, "api.example.com", "evil.example"]);
    let fork = session.fork(ForkPolicy::default().capabilities(net(&["*.example.com"]))).unwrap();
    assert_eq!(desk.reached(&fork, "Read", json!({})).await, [docs, "api.example.com"]);
    let none = session.fork(ForkPolicy::default().capabilities(net(&[]))).unwrap();
    assert_eq!(desk.reached(&none, "Read", json!({})).await, [docs]);
}

/// SM-2: without a workspace there are no files.
#[tokio::test(start_paused = true)]
async fn without_a_workspace_no_file_is_reached() {
    let desk = Desk::open().await;
    let session = desk.yard.engine.session("none");
    assert_eq!(desk.reached(&session, "Write", json!({})).await, Vec::<String>::new());
}
