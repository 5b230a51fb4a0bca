//! What a configuration lets run, what it lets calls touch, and who sees which tools.

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A fresh workspace with this configuration in it.
fn configured(name: &str, config: &str) -> (PathBuf, String) {
    let dir = dir(name);
    let file = dir.join("toolyard.toml");
    fs::write(&file, format!("[workspace]\nroot = \".\"\n{config}")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (dir, file)
}

fn batch() -> String {
    let write = |path: &str| json!({"path": path, "content": "x"});
    json!({"calls": [
        {"call_id": "a", "name": "write_file", "arguments": write("out/a")},
        {"call_id": "b", "name": "write_file", "arguments": write("b")},
        {"call_id": "c", "name": "list_dir", "arguments": {}},
        {"call_id": "d", "name": "echo", "arguments": {"text": "x"}},
    ]})
    .to_string()
}

fn run(file: &str, more: &[&str]) -> (Vec<String>, Done) {
    let mut args = vec!["run", "--report", "none", "--config", file];
    args.extend(more);
    let done = toolyard(&args, &batch());
    let json = done.json();
    let code = |result: &Value| result["error"]["code"].as_str().unwrap_or("ok").to_owned();
    (json["results"].as_array().unwrap().iter().map(code).collect(), done)
}

/// PO-1: a rule of the policy refuses a call whatever the approval; a sandbox that does not exist runs nothing.
#[test]
fn a_policy_decides_what_runs() {
    let rules =
        "[policy]\ndefault = \"deny\"\nside_effects = { write = \"allow\", none = { sandbox = \"wasm\" } }\n";
    let (dir, file) = configured("policy", rules);
    let (codes, _) = run(&file, &["--approve", "auto"]);
    assert_eq!(codes, ["ok", "ok", "permission_denied", "sandbox_error"]);
    assert!(dir.join("b").exists());
    let plan = toolyard(&["plan", "--json", "--config", &file], &batch());
    assert_eq!(plan.lines()[0]["calls"][2]["error"]["code"], "permission_denied");
}

/// PO-1b: paths and tools that are not granted are refused.
#[test]
fn capabilities_bound_what_calls_touch() {
    let may = "[policy.capabilities]\ntools = [\"write_file\", \"list_dir\"]\nfs = [\"rw:out\"]\n";
    let (dir, file) = configured("capabilities", may);
    let (codes, _) = run(&file, &["--approve", "auto"]);
    assert_eq!(codes, ["ok", "fs_denied", "fs_denied", "permission_denied"]);
    assert!(dir.join("out/a").exists() && !dir.join("b").exists());
    let listed = toolyard(&["tools", "--as", "mcp", "--config", &file], "").stdout;
    assert!(listed.contains("\"write_file\"") && !listed.contains("\"echo\""), "{listed}");
}

/// PO-3: a workspace that is trusted, or lies under a trusted one, is written to without a question.
#[test]
fn a_trusted_workspace_is_written_to() {
    let (dir, file) = configured("trusted", "[confirmation]\ntrusted_workspaces = [\"..\"]\n");
    let (codes, _) = run(&file, &[]);
    assert_eq!(codes, ["ok", "ok", "ok", "ok"]);
    assert!(dir.join("b").exists());
    let (_, file) = configured("untrusted", "[confirmation]\ntrusted_workspaces = [\"../elsewhere\"]\n");
    let (codes, _) = run(&file, &[]);
    assert_eq!(codes, ["user_denied", "user_denied", "ok", "ok"]);
}

/// PO-1b: for a role from which a tool is hidden, the tool does not exist in any command.
#[test]
fn a_role_does_not_know_what_is_hidden_from_it() {
    let (_, file) = configured("role", "[tools.write_file]\nhidden_from = [\"reviewer\"]\n");
    let (codes, done) = run(&file, &["--approve", "auto", "--role", "reviewer"]);
    assert_eq!(codes, ["not_found", "not_found", "ok", "ok"]);
    assert!(!done.json()["results"][0]["error"]["message"].as_str().unwrap().contains("write_file,"));
    assert_eq!(run(&file, &["--approve", "auto"]).0, ["ok", "ok", "ok", "ok"]);
    let tools = |role: &[&str]| {
        let mut args = vec!["tools", "--config", &file];
        args.extend(role);
        toolyard(&args, "").stdout.contains("write_file")
    };
    assert!(tools(&[]) && tools(&["--role", "editor"]) && !tools(&["--role", "reviewer"]));
    let plan = toolyard(&["plan", "--json", "--config", &file, "--role", "reviewer"], &batch());
    assert_eq!(plan.lines()[0]["calls"][0]["error"]["code"], "not_found");
}

/// PO-1, PO-1b, PO-3: `check` shows the effective settings of each tool, and which of them cannot be enforced.
#[test]
fn check_shows_what_each_tool_may_do() {
    let config = "[policy]\nside_effects = { none = { memory = \"1536KiB\", wall_time = \"30s\" } }\n\
                  rules = { list_dir = \"deny\", patch_file = { sandbox = \"process\", processes = 2 }, \
                  \"git__*\" = \"deny\" }\n\
                  [policy.capabilities]\ntools = [\"echo\", \"list_dir\"]\nfs = [\"r:docs\", \"rw:out\"]\nnet = []\n\
                  [confirmation]\ntrusted_workspaces = [\".\", \"missing\"]\n\
                  [tools.read_file]\nhidden_from = [\"sub-agents\", \"guest\"]\nrequires_capability = false\n";
    let (dir, file) = configured("check-permission", config);
    let done = toolyard(&["check", "--config", &file], "");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let has = |line: &str| assert!(done.stdout.lines().any(|found| found == line), "{line}\n{}", done.stdout);
    has("capabilities   tools echo, list_dir; fs r:docs, rw:out; net none");
    has(&format!("trusted        {}; this workspace is trusted", dir.canonicalize().unwrap().display()));
    has("tool        policy  sandbox  limits               approval       may call  hidden from");
    has("echo        allow   host     30s, 1536KiB memory  auto           yes       -");
    has("list_dir    deny    -        -                    auto           yes       -");
    has("patch_file  allow   process  2 processes          auto, trusted  no        -");
    has("read_file   allow   host     -                    auto           always    sub-agents, guest");
    has("warning: tool 'echo': sandbox 'host' cannot limit memory: its calls will fail with sandbox_error");
    has("warning: tool 'patch_file': it cannot run in sandbox 'process', only in: host: its calls will \
         fail with sandbox_error");
    has("warning: [confirmation] trusted_workspaces: 'missing' is not a directory, so it has no effect");
    has("note: [policy] rules 'git__*': no tool has such a name");
}

/// SB-4: a path that a sandbox cannot be given is told by `check`, and the call is refused as that said; of one that runs
/// nothing is told.
#[cfg(target_os = "linux")]
#[test]
fn check_finds_what_a_sandbox_cannot_be_given() {
    let program = "[program.t]\ndescription = \"A tool\"\ncommand = [\"/bin/cat\"]\n";
    let refused = |what: &str| {
        let process = "warning: tool 't': sandbox 'process' cannot be given";
        Some(format!("{process} {what}: its calls will fail with sandbox_error"))
    };
    let unread = "which may be written and not read: a process reads what it writes";
    let missing = "which does not exist: a process is given what does, so grant its directory";
    let named = "side_effects = \"write\"\npaths = { out = \"w\" }\n";
    let written = "side_effects = \"write\"\npaths = { out = \"rw\" }\n";
    let run = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"out": "in/x"}}]}).to_string();
    for (of_tool, fs_grants, warning) in [
        ("", "\"w:in\"", refused(&format!("'in', {unread}"))),
        ("", "\"r:.\", \"rw:new\"", refused(&format!("'new', {missing}"))),
        (named, "\"rw:in\"", refused(&format!("the path in its argument 'out', {unread}"))),
        (written, "\"w:in\"", None),
        ("side_effects = \"read\"\n", "\"w:in\", \"r:in\"", None),
        ("", "\"rw:in\", \"r:new\"", None),
    ] {
        let config = format!("{program}{of_tool}[policy.capabilities]\nfs = [{fs_grants}]\n");
        let (dir, file) = configured("check-ungiven", &config);
        fs::create_dir_all(dir.join("in")).unwrap();
        fs::write(dir.join("in/x"), "").unwrap();
        let done = toolyard(&["check", "--config", &file], "");
        let found = done.stdout.lines().find(|line| line.contains("cannot be given")).map(str::to_owned);
        assert_eq!(found, warning, "{of_tool}{fs_grants}: {done:?}");
        let args = ["run", "--report", "none", "--approve", "auto", "--config", &file];
        let json = toolyard(&args, &run).json();
        let said = json["results"][0]["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(said.contains("cannot be given"), warning.is_some(), "{of_tool}{fs_grants}: {json}");
    }
}
