//! A journal in a directory of its own, engines that write it, and the program that reads it.

use crate::child::{Done, fed, program};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;
use toolyard::{
    ApprovalDesk, Call, Confirmations, Drain, Engine, EngineBuilder, ToolContext, ToolSpec, tool_fn,
};
use toolyard_journal::{Durability, Journal, Reader, Settings};

pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("agent.journal")
    }

    pub(crate) fn open(&self) -> Journal {
        Journal::open(self.path(), Settings::default().durability(Durability::Process)).unwrap()
    }

    /// Runs `toolyard journal SUB FILE` with these arguments behind it.
    pub(crate) fn run(&self, sub: &str, args: &[&str]) -> Done {
        let mut program = program(&["journal", sub]);
        program.arg(self.path()).args(args).env("LOGNAME", "ada").env_remove("USER");
        fed(program, "")
    }

    /// Runs it, and reads the lines that it prints.
    pub(crate) fn lines(&self, sub: &str, args: &[&str]) -> Vec<Value> {
        let done = self.run(sub, args);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
        done.lines()
    }

    /// The line of `show` about the call with this id.
    pub(crate) fn call(&self, session: &str, id: &str) -> Value {
        let lines = self.lines("show", &["--session", session, "--json"]);
        lines.into_iter().find(|line| line["call_id"] == id).unwrap()
    }

    fn open_questions(&self) -> usize {
        match self.path().exists() {
            true => Reader::open(self.path()).unwrap().open_questions().unwrap().len(),
            false => 0,
        }
    }

    /// Makes some calls in the session `demo`, and lets the engine end cleanly.
    pub(crate) async fn calls(&self, calls: Vec<Call>) {
        let journal = self.open();
        let engine = engine(&journal).build().await.unwrap();
        engine.session("demo").dispatch(calls).await;
        engine.shutdown(Drain::default()).await;
        journal.close().unwrap();
    }

    /// Makes some calls in the session `demo`, of which so many ask at once; nobody answers, and the engine ends cleanly.
    pub(crate) async fn questions(&self, calls: Vec<Call>, asked: usize) {
        let before = self.open_questions();
        let (journal, desk) = (self.open(), ApprovalDesk::default());
        let builder = engine(&journal).confirmations(Confirmations::default()).approver(desk.clone());
        let engine = builder.build().await.unwrap();
        let session = engine.session("demo");
        let stops = async {
            // Not each of them is shown: calls may share one.
            while self.open_questions() < before + asked {
                tokio::task::yield_now().await;
            }
            engine.shutdown(Drain::default()).await;
        };
        tokio::join!(session.dispatch(calls), stops);
        journal.close().unwrap();
    }
}

/// An engine with tools that write (`save`, `fail`; `send`, many at a time) and read (`look`).
pub(crate) fn engine(journal: &Journal) -> EngineBuilder {
    let say = |spec: ToolSpec, said: &'static str| {
        tool_fn(spec, move |_: Value, _: ToolContext| async move { Ok(said) })
    };
    let open = serde_json::json!({"type": "object"});
    let write = |name: &str| ToolSpec::write(name).input_schema(open.clone());
    let (save, send) = (say(write("save"), "saved"), say(write("send").concurrent(), "sent"));
    let look = say(ToolSpec::read("look").input_schema(open.clone()), "seen");
    let fail = tool_fn(write("fail"), |_: Value, _: ToolContext| async move {
        Err::<&'static str, _>(toolyard::ToolError::execution("the disk says no"))
    });
    Engine::builder()
        .tool(save)
        .tool(send)
        .tool(look)
        .tool(fail)
        .confirmations(Confirmations::auto())
        .recorder(journal.clone())
}
