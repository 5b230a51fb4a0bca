//! The program as a server, with an rmcp client.

use crate::place::dir;
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, MetaObject,
        ProgressNotificationParam, Request, RequestMetaObject, ServerResult,
    },
    service::{
        NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService, ServiceError,
    },
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::process::{Child, Command};

/// A client that records what it receives, and answers questions.
#[derive(Clone, Default)]
pub(crate) struct Person {
    /// Its answer to questions. Without one, the client declares that it cannot be asked.
    pub(crate) answer: Option<&'static str>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    pub(crate) progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Person {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("no form") };
        self.asked.lock().unwrap().push(message);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"answer": self.answer})))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(progress);
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.answer {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("rmcp", "3"))
    }
}

/// A program that serves, its workspace, and its client.
pub(crate) struct Yard {
    pub(crate) dir: PathBuf,
    pub(crate) program: Child,
    pub(crate) client: RunningService<RoleClient, Person>,
}

impl Yard {
    /// A yard with all tools, in which every call is approved.
    pub(crate) async fn open(name: &str) -> Self {
        Self::with(name, &["--approve", "auto"], Person::default()).await
    }

    pub(crate) async fn with(name: &str, args: &[&str], person: Person) -> Self {
        Self::before(name, "", args, person).await
    }

    /// A yard with these servers in its configuration.
    pub(crate) async fn before(name: &str, servers: &str, args: &[&str], person: Person) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        let config = dir.join("toolyard.toml");
        let text = "[workspace]\nroot = \".\"\n[builtin]\nenable = [\"shell\", \"echo\", \"read_file\", \"write_file\"]\n\
                    [shell]\nenv = [\"PATH\"]\n";
        fs::write(&config, format!("{text}{servers}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command.arg("mcp").args(args).current_dir(&dir);
        command.args(["--events", "events.jsonl", "--config"]).arg(&config);
        Self::started(command, dir, person).await
    }

    /// A yard with the program that this command starts.
    pub(crate) async fn started(mut command: Command, dir: PathBuf, person: Person) -> Self {
        command.env_remove("TOOLYARD_LOG").kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let pipes = (program.stdout.take().unwrap(), program.stdin.take().unwrap());
        let client = person.serve(pipes).await.unwrap();
        Self { dir, program, client }
    }

    /// Sends a call, with this `_meta`.
    pub(crate) async fn send(
        &self,
        tool: &'static str,
        args: Value,
        meta: Value,
    ) -> RequestHandle<RoleClient> {
        let Value::Object(meta) = meta else { panic!("no object") };
        let params = CallToolRequestParams::new(tool).with_arguments(args.as_object().unwrap().clone());
        let request = ClientRequest::CallToolRequest(Request::new(params));
        let options = PeerRequestOptions::default().with_meta(RequestMetaObject(MetaObject(meta)));
        self.client.send_cancellable_request(request, options).await.unwrap()
    }

    pub(crate) async fn call(&self, tool: &'static str, args: Value) -> Result<CallToolResult, ServiceError> {
        read(self.send(tool, args, json!({})).await).await
    }

    /// Waits for the program's exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        self.program.wait().await.unwrap().code()
    }

    /// The events, once the program has ended.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.dir.join("events.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The result of a call that was sent.
pub(crate) async fn read(sent: RequestHandle<RoleClient>) -> Result<CallToolResult, ServiceError> {
    match sent.await_response().await? {
        ServerResult::CallToolResult(result) => Ok(result),
        other => panic!("no result of a tool: {other:?}"),
    }
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// A part of a result's `_meta`.
pub(crate) fn meta(result: &CallToolResult, key: &str) -> Value {
    result.meta.as_ref().unwrap().0[key].clone()
}

/// The number of processes that work in this directory, except the program.
pub(crate) fn working_in(dir: &Path, program: Option<u32>) -> usize {
    let own = program.map(|pid| PathBuf::from(format!("/proc/{pid}")));
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let others = pids.filter(|pid| Some(pid) != own.as_ref());
    others.filter(|pid| fs::read_link(pid.join("cwd")).is_ok_and(|cwd| cwd == dir)).count()
}

/// Polls a condition on the system, for half a minute at most.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came to this: {what}");
}
