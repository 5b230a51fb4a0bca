//! The official inspector's command line lists tools and calls them.

use crate::{
    gateway::{Gateway, configured},
    judges::{self, Judges},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The inspector's output.
fn shown(judges: &Judges, home: &Path, args: &[&str]) -> Value {
    let done = judges.inspector(home).args(args).output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// V5: over stdio and over HTTP, the inspector sees the tools and every kind of content.
#[test]
fn the_inspector_lists_and_calls() {
    let Some(judges) = judges::place() else { return };
    let config = configured(&judges, "suite", "inspector");
    let home = config.parent().unwrap();
    let args = json!(["mcp", "--approve", "auto", "--config", config]);
    let server =
        json!({"mcpServers": {"toolyard": {"command": env!("CARGO_BIN_EXE_toolyard"), "args": args}}});
    fs::write(home.join("servers.json"), server.to_string()).unwrap();
    let gateway = Gateway::open(&config);
    for way in
        [vec!["--config", "servers.json", "--server", "toolyard"], vec![&gateway.url, "--transport", "http"]]
    {
        let listed = shown(&judges, home, &[&way[..], &["--method", "tools/list"]].concat());
        let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("test_simple_text")), "{names:?}");
        let call = ["--method", "tools/call", "--tool-name", "test_multiple_content_types"];
        let called = shown(&judges, home, &[&way[..], &call[..]].concat());
        let kinds: Vec<_> = called["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
        assert_eq!(kinds, ["text", "image", "resource"]);
    }
}
