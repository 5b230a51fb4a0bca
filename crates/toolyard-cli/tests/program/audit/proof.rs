//! An agent with some grants: how its calls end, what older vocabularies call that, and what the audit says.

use crate::{child::toolyard, place::dir};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use toolyard::{
    Call, Capabilities, Drain, Engine, EngineBuilder, Event, FsGrant, FsMode, Outcome, PolicyRules, Rule,
    SessionOptions, ToolContext, ToolError, ToolSpec, error::Slug, tool_fn,
};
use toolyard_tools::Workspace;

/// Writes events as the program does.
fn into(path: &Path) -> impl Fn(&Event) + Send + Sync + use<> {
    let file = Arc::new(Mutex::new(File::create(path).unwrap()));
    move |event: &Event| {
        let line = serde_json::to_string(event).unwrap() + "\n";
        file.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct At {
    #[allow(dead_code, reason = "the gate looks at it")]
    path: String,
}

fn look() -> impl toolyard::ToolFactory {
    let spec = ToolSpec::read("look").requires_fs(FsMode::Read, "path");
    tool_fn(spec, |_: At, _: ToolContext| async { Ok("seen") })
}

fn broken() -> Result<&'static str, ToolError> {
    panic!("told to")
}

fn tools(builder: EngineBuilder) -> EngineBuilder {
    let spec = |name: &str| ToolSpec::read(name);
    builder
        .tool(look())
        .tool(tool_fn(spec("denied"), |(): (), _: ToolContext| async { Ok("never") }))
        .tool(tool_fn(spec("breaks"), |(): (), _: ToolContext| async { broken() }))
        .tool(tool_fn(ToolSpec::write("asks"), |(): (), _: ToolContext| async { Ok("never") }))
}

/// Runs the calls as an agent that may read `docs`; returns the results and the audit of the log.
async fn run(
    name: &str,
    with: impl FnOnce(EngineBuilder) -> EngineBuilder,
    calls: Vec<Call>,
) -> (Vec<Outcome>, Value) {
    let root: PathBuf = dir(&format!("proof-{name}"));
    std::fs::create_dir(root.join("docs")).unwrap();
    let path = root.join("log.jsonl");
    let rules = PolicyRules::new(Rule::allow()).tool("denied", Rule::Deny);
    let engine = with(Engine::builder().policy(rules).events(into(&path))).build().await.unwrap();
    let grants = Capabilities::default().fs([FsGrant::new(FsMode::Read, "docs").unwrap()]);
    let workspace = Arc::new(Workspace::open(&root).unwrap());
    let options = SessionOptions::default().workspace(workspace).capabilities(grants);
    let session = engine.session_with("agent", options);
    let outcomes = session.dispatch(calls).await;
    drop(session);
    engine.shutdown(Drain::default()).await;
    let done = toolyard(&["audit", path.to_str().unwrap(), "--json"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    (outcomes, done.json())
}

/// What an older dispatcher calls this outcome.
fn slug(outcome: &Outcome) -> &'static str {
    outcome.error().map_or("ok", |error| Slug::from(error.kind).as_str())
}

/// Code, slug and decision of each call, on which the result and the audit must agree.
fn summary(outcomes: &[Outcome], account: &Value) -> Vec<String> {
    let calls = account["calls"].as_array().unwrap();
    assert_eq!((account["verdict"].as_str(), calls.len()), (Some("whole"), outcomes.len()));
    let one = |outcome: &Outcome| {
        let call = calls.iter().find(|call| call["call_id"] == outcome.call_id.as_str()).unwrap();
        let code = outcome.error().map_or("ok", |error| error.kind.code());
        assert_eq!(call["outcome"]["code"].as_str().unwrap_or("ok"), code);
        assert_eq!(call["outcome"]["slug"].as_str().unwrap_or("ok"), slug(outcome));
        assert_eq!(call["attempts"], outcome.attempts);
        assert_eq!(call["digest"].as_str().unwrap().len(), 64);
        assert_eq!((&call["session"], &call["agent"]), (&json!("agent"), &json!("root")));
        let decision = call["decision"]["what"].as_str().unwrap();
        format!("{} {code} {} {decision}", outcome.call_id, slug(outcome))
    };
    outcomes.iter().map(one).collect()
}

/// V6, OB-1, I1: a granted call, one denied by policy, an unknown tool, a path that is not granted, invalid arguments,
/// a question that nobody can answer, and a handler that panics. Each has one result and one audit line, which agree.
#[tokio::test]
async fn every_way_of_a_call_is_on_the_record() {
    let calls = vec![
        Call::new("granted", "look", json!({"path": "docs/a.md"})),
        Call::new("denied", "denied", json!({})),
        Call::new("unknown", "lok", json!({})),
        Call::new("ungranted", "look", json!({"path": "secret"})),
        Call::new("outside", "look", json!({"path": "../secret"})),
        Call::new("unfit", "look", json!({"path": 7})),
        Call::new("unasked", "asks", json!({})),
        Call::new("broken", "breaks", json!({})),
    ];
    let (outcomes, account) = run("ways", tools, calls).await;
    let expected = [
        "granted ok ok allowed",
        "denied permission_denied permission_denied denied",
        "unknown not_found tool_not_found not_run",
        "ungranted fs_denied fs_denied denied",
        "outside permission_denied permission_denied denied",
        "unfit invalid_input invalid_args invalid",
        "unasked user_denied permission_denied denied",
        "broken panic tool_failed allowed",
    ];
    assert_eq!(summary(&outcomes, &account), expected);
    let unknown =
        &account["calls"].as_array().unwrap().iter().find(|call| call["call_id"] == "unknown").unwrap();
    assert_eq!(unknown["tool_name"], "_unknown");
}

/// V6: without any tool every name is unknown, and that is on the record.
#[tokio::test]
async fn an_empty_registry_knows_no_tool() {
    let (outcomes, account) = run("empty", |builder| builder, vec![Call::new("a", "look", json!({}))]).await;
    assert_eq!(summary(&outcomes, &account), ["a not_found tool_not_found not_run"]);
    assert_eq!(outcomes[0].error().unwrap().message, "Tool 'look' not found. Available: []");
}
