use crate::{BUILTIN, Workspace, builtin, workspace, workspace_tools};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use toolyard_core::{
    ContextParts, FsMode, FsRequirement, Placement, Resources, SideEffects, ToolContext, ToolError,
    ToolErrorKind, ToolFactory, ToolOutput,
};

/// Keywords of JSON Schema that a tool's schema may use.
const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "default",
    "minimum",
    "minLength",
];

mod previews;

struct Fixture {
    _dir: TempDir,
    parts: ContextParts,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let mut parts = ContextParts::detached("test");
        parts.resources = Arc::new(Resources::new().with(workspace));
        Self { _dir: dir, parts }
    }

    fn call(&self, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
        run(&*builtin(tool).unwrap(), args, self.parts.clone())
    }
}

fn run(tool: &dyn ToolFactory, args: Value, parts: ContextParts) -> Result<ToolOutput, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let cx = ToolContext::new(parts);
    runtime.block_on(async { tool.create().execute(&args, &cx).await })
}

/// Each line of a listing is one entry, whatever its name contains; the data has the real name.
#[cfg(unix)]
#[test]
fn a_listing_has_one_line_for_each_name() {
    let fixture = Fixture::new();
    let name = "a\nsecrets/\u{1b}[2J\u{2028}".replace('/', "|");
    fixture.call("write_file", json!({"path": name, "content": ""})).unwrap();
    let listed = fixture.call("list_dir", json!({})).unwrap();
    assert_eq!(listed.to_text(), "a\\u000asecrets|\\u001b[2J\\u2028");
    assert_eq!(listed.structured().unwrap()["entries"][0]["name"], name);
}

#[test]
fn the_tools_work_on_one_workspace() {
    let fixture = Fixture::new();
    let wrote = fixture.call("write_file", json!({"path": "./a/b.txt", "content": "one\ntwo\n"})).unwrap();
    assert_eq!(wrote.structured().as_deref(), Some(&json!({"size": 8})));
    assert_eq!(wrote.files_modified(), ["a/b.txt"]);
    let patch = json!({"path": "a/b.txt", "old": "two", "new": "three"});
    let patched = fixture.call("patch_file", patch).unwrap();
    assert_eq!(
        (patched.structured().as_deref(), patched.files_modified()),
        (Some(&json!({"size": 10})), ["a/b.txt".to_owned()].as_slice())
    );
    let read = fixture.call("read_file", json!({"path": "a/b.txt"})).unwrap();
    assert_eq!(read.to_text(), "one\nthree\n");
    assert_eq!(read.structured().as_deref(), Some(&json!({"content": "one\nthree\n", "size": 10})));
    let listed = fixture.call("list_dir", json!({})).unwrap();
    assert_eq!(listed.to_text(), "a/");
    let entries = json!({"entries": [{"name": "a", "kind": "directory"}], "left_out": 0});
    assert_eq!(listed.structured().as_deref(), Some(&entries));
    let echo = fixture.call("echo", json!({"text": "hi"})).unwrap();
    assert_eq!(
        (echo.to_text(), echo.structured().as_deref()),
        ("hi".to_owned(), Some(&json!({"text": "hi"})))
    );
}

#[test]
fn a_part_of_a_file_says_that_it_is_one() {
    let fixture = Fixture::new();
    let content: String = (1..=3_000).map(|line| format!("{line}\n")).collect();
    fixture.call("write_file", json!({"path": "f", "content": content})).unwrap();
    let read = fixture.call("read_file", json!({"path": "f"})).unwrap();
    assert!(read.to_text().ends_with("\n2000\n[lines 1 to 2000 of 3000; read on with offset 2001]"));
    let structured = read.structured().unwrap();
    let truncated = &structured["truncated"];
    assert_eq!(*truncated, json!({"first_line": 1, "last_line": 2000, "lines": 3000}));
    let error = fixture.call("read_file", json!({"path": "f", "offset": 3_001})).unwrap_err();
    assert_eq!(error.message(), "offset 3001 is past the end: the file has 3000 lines");
}

/// V1: a number of lines is one however it is written.
#[test]
fn a_number_of_lines_may_have_an_exponent() {
    let fixture = Fixture::new();
    fixture.call("write_file", json!({"path": "f", "content": "one\ntwo\nthree\n"})).unwrap();
    let read = fixture.call("read_file", json!({"path": "f", "offset": 0.2e1, "limit": 1.0})).unwrap();
    assert!(read.to_text().starts_with("two\n[lines 2 to 2 of 3"), "{}", read.to_text());
    for offset in [json!(0), json!(1.5), json!(-1), json!("2")] {
        let error = fixture.call("read_file", json!({"path": "f", "offset": offset})).unwrap_err();
        assert_eq!(error.message(), format!("{offset} is not a number of lines"));
    }
}

#[test]
fn an_escape_is_permission_denied_and_the_rest_says_why() {
    let fixture = Fixture::new();
    let escape = fixture.call("read_file", json!({"path": "../x"})).unwrap_err();
    assert_eq!(escape.kind(), ToolErrorKind::PermissionDenied);
    assert_eq!(escape.message(), "Path '../x' escapes workspace boundary");
    let missing = fixture.call("read_file", json!({"path": "x"})).unwrap_err();
    assert_eq!(missing.kind(), ToolErrorKind::Execution);
    assert_eq!(missing.message(), "no such file 'x'; the directory is empty");
    let bad = fixture.call("write_file", json!({"path": "x"})).unwrap_err();
    assert_eq!(bad.kind(), ToolErrorKind::InvalidInput);
}

#[test]
fn a_call_without_a_workspace_says_so() {
    let args = json!({"path": "f", "content": "x"});
    let error = run(&*builtin("write_file").unwrap(), args.clone(), ContextParts::detached("write_file"));
    assert_eq!(
        error.unwrap_err().message(),
        "tool 'write_file' needs a workspace, but this session has none"
    );
}

#[test]
fn a_toolset_brings_its_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let set = workspace(dir.path()).unwrap();
    let mut parts = ContextParts::detached("write_file");
    parts.resources = Arc::new(set.resources);
    let write = set.tools.iter().find(|tool| tool.spec().name == "write_file").unwrap();
    run(&**write, json!({"path": "f", "content": "x"}), parts).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("f")).unwrap(), "x");
}

#[test]
fn a_cancelled_call_does_not_start() {
    let fixture = Fixture::new();
    fixture.parts.cancel.cancel();
    let error = fixture.call("write_file", json!({"path": "f", "content": "x"})).unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::Cancelled);
    assert!(error.has_no_side_effect());
}

#[test]
fn every_file_tool_declares_its_path_and_blocks() {
    let read = (SideEffects::Read, FsMode::Read);
    // A preview of what is written shows what is there, so writing takes the right to read.
    let write = (SideEffects::Write, FsMode::ReadWrite);
    for (tool, (effect, mode)) in workspace_tools().iter().zip([read, read, write, write]) {
        let spec = tool.spec();
        assert_eq!(spec.side_effects, effect, "{}", spec.name);
        assert_eq!(spec.requires_fs, [FsRequirement { mode, argument: "path".to_owned() }], "{}", spec.name);
        assert!(spec.requires_workspace);
        assert_eq!(spec.placement, Placement::Blocking);
    }
}

#[test]
fn schemas_keep_to_the_checked_subset() {
    for name in BUILTIN {
        let schema = builtin(name).unwrap().spec().schema();
        assert_eq!(schema["additionalProperties"], json!(false), "{name}");
        let mut objects = vec![&schema];
        objects.extend(schema["properties"].as_object().unwrap().values());
        for key in objects.iter().flat_map(|object| object.as_object().unwrap().keys()) {
            assert!(KEYWORDS.contains(&key.as_str()), "{name}: {key}");
        }
    }
}
