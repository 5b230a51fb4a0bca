//! Tools that are programs: declared in the configuration, started for each call, ended with all that they start.
#![cfg(unix)]

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A yard whose tools lie beside its workspace.
struct Yard {
    file: String,
    workspace: std::path::PathBuf,
}

impl Yard {
    /// A yard with one tool, a shell script, that runs on the host.
    fn new(name: &str, script: &str, more: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        let workspace = dir.join("work");
        fs::create_dir_all(&workspace).unwrap();
        fs::write(dir.join("tool.sh"), script).unwrap();
        let file = dir.join("toolyard.toml");
        let config = format!(
            "[workspace]\nroot = \"work\"\n[policy.rules]\nt = {{ sandbox = \"host\" }}\n[program.t]\n\
             description = \"A tool\"\ncommand = [\"sh\", \"./tool.sh\"]\n{more}\n"
        );
        fs::write(&file, config).unwrap();
        Self { file: file.to_str().unwrap().to_owned(), workspace }
    }

    fn run(&self, arguments: &Value, more: &[&str]) -> Done {
        let calls = json!({"calls": [{"call_id": "a", "name": "t", "arguments": arguments}]});
        let args = ["run", "--report", "none", "--approve", "auto", "--config", &self.file];
        toolyard(&[&args, more].concat(), &calls.to_string())
    }

    fn result(&self, arguments: &Value) -> Value {
        self.run(arguments, &[]).json()["results"][0].take()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// SB-2: one document in, text out, in the workspace and with no variable of this program.
#[test]
fn a_program_reads_its_arguments_and_prints_its_result() {
    let yard = Yard::new("program-text", "cat; echo; pwd; env | sort", "env = { LANG = \"C\" }");
    let result = yard.result(&json!({"b": 1, "a": "x"}));
    let lines: Vec<&str> = text(&result).lines().collect();
    assert_eq!(lines[..2], [r#"{"b":1,"a":"x"}"#, yard.workspace.to_str().unwrap()]);
    let variables: Vec<&str> = lines[2..].iter().map(|line| line.split('=').next().unwrap()).collect();
    let expect =
        ["LANG", "PWD", "TOOLYARD_ATTEMPT", "TOOLYARD_CALL_ID", "TOOLYARD_DEADLINE_MS", "TOOLYARD_TOOL"];
    let variables: Vec<_> =
        variables.into_iter().filter(|name| !matches!(*name, "_" | "SHLVL" | "OLDPWD")).collect();
    assert_eq!(variables, expect, "{result}");
}

/// SB-2: one JSON document out is the result as data, and anything else is no result.
#[test]
fn a_document_is_data() {
    let yard = Yard::new("program-json", "cat >/dev/null; echo '{\"words\": 3}'", "output = \"json\"");
    let result = yard.result(&json!({}));
    assert_eq!(result["structured"], json!({"words": 3}), "{result}");
    let yard = Yard::new("program-no-json", "echo 3 words", "output = \"json\"");
    let result = yard.result(&json!({}));
    assert_eq!(result["error"]["code"], "output_invalid", "{result}");
}

/// SB-9: the result and the event of its end say what a program used, also if it failed.
#[test]
fn what_a_program_used_is_told() {
    for (code, event) in [(0, "tool.completed"), (3, "tool.failed")] {
        let script = format!("head -c 40000000 /dev/zero | tail -c 30000000 >/dev/null; exit {code}");
        let yard = Yard::new(&format!("program-usage-{code}"), &script, "");
        let log = Path::new(&yard.file).with_file_name("log.jsonl");
        let done = yard.run(&json!({}), &["--events", log.to_str().unwrap()]);
        let result = &done.json()["results"][0];
        let said = if code == 0 { result } else { &result["error"] };
        let log = fs::read_to_string(log).unwrap();
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ended = events.into_iter().find(|line| line["event"] == event).expect("it ended");
        assert_eq!(ended["usage"], said["usage"], "{result}");
        assert!(said["usage"]["wall_ms"].is_u64(), "{result}");
        if cfg!(target_os = "linux") {
            assert!(said["usage"]["memory_peak_bytes"].as_u64().unwrap() >= 30_000_000, "{result}");
            assert!(said["usage"]["cpu_ms"].is_u64(), "{result}");
        }
    }
}

/// SB-2: an exit code is a failure with what was printed, and standard error is streamed while the program runs.
#[test]
fn an_exit_code_is_a_failure() {
    let yard = Yard::new("program-fails", "echo found; echo looking >&2; exit 3", "");
    let log = Path::new(&yard.file).with_file_name("log.jsonl");
    let done = yard.run(&json!({}), &["--events", log.to_str().unwrap()]);
    let result = &done.json()["results"][0];
    assert_eq!(result["error"]["code"], "execution_error");
    assert_eq!(text(result), "exit code 3\nfound\n[standard error]\nlooking\n");
    let events = fs::read_to_string(log).unwrap();
    let delta = events.lines().find(|line| line.contains("tool.output_delta")).unwrap();
    assert!(delta.contains("looking\\n") && !delta.contains("found"), "{delta}");
}

/// SB-2, RT-1: 75 with a document is tried again, and each attempt knows its number.
#[test]
fn try_again_is_tried_again() {
    let script = "if [ $TOOLYARD_ATTEMPT -lt 3 ]; then echo '{\"error\":{\"message\":\"busy\",\"no_side_effect\":true,\
                  \"retry_after_ms\":1}}'; exit 75; fi; echo attempt $TOOLYARD_ATTEMPT";
    let yard = Yard::new("program-again", script, "[retry]\nbase = \"1ms\"\ncap = \"2ms\"");
    assert_eq!(text(&yard.result(&json!({}))), "attempt 3\n");
}

/// SB-2: a signal leaves the effect unknown, unless the tool only reads.
#[test]
fn a_signal_leaves_the_effect_unknown() {
    for (effects, outcome) in [("write", "unknown"), ("read", "failed")] {
        let yard =
            Yard::new("program-signal", "echo so far; kill -9 $$", &format!("side_effects = \"{effects}\""));
        let result = yard.result(&json!({}));
        assert_eq!(result["error"]["message"], "the program was killed by signal 9", "{result}");
        assert_eq!(result["error"]["outcome"], outcome, "{result}");
        assert!(result.to_string().contains("so far"), "{result}");
    }
}

/// SB-7: what has to stop is ended with all that it started, and its output so far is in the result.
#[cfg(target_os = "linux")]
#[test]
fn a_timeout_ends_all_of_it() {
    let script = "trap 'echo asked' TERM; (setsid sleep 60 &) ; echo started; while :; do sleep 0.01; done";
    let yard = Yard::new("program-timeout", script, "[tools.t]\ntimeout = \"300ms\"");
    let result = yard.result(&json!({}));
    assert_eq!(result["error"]["code"], "timeout", "{result}");
    assert!(result.to_string().contains("started"), "{result}");
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let left =
        pids.filter(|pid| fs::read_link(pid.join("cwd")).is_ok_and(|cwd| cwd == yard.workspace)).count();
    assert_eq!(left, 0);
}

/// SB-1: a program that calls may write is refused before anything runs, by every command.
#[test]
fn a_program_in_the_workspace_is_refused() {
    let yard = Yard::new("program-writable", "true", "");
    let config = fs::read_to_string(&yard.file).unwrap();
    fs::write(yard.workspace.join("tool.sh"), "true").unwrap();
    let inside = config.replace("./tool.sh", "./work/tool.sh");
    fs::write(&yard.file, &inside).unwrap();
    for command in ["run", "check"] {
        let done = toolyard(&[command, "--config", &yard.file], "{\"calls\": []}");
        let expect = "which lies in the workspace, and so change what this tool does: move it elsewhere";
        assert!(done.code == Some(2) && done.stderr.contains(expect), "{command}: {}", done.stderr);
    }
    let limited = format!("{inside}[policy.capabilities]\nfs = [\"r:.\", \"rw:out\"]\n");
    fs::write(&yard.file, limited).unwrap();
    assert_eq!(toolyard(&["check", "--config", &yard.file], "").code, Some(0));
    fs::write(&yard.file, inside.replace("description", "writable = true\ndescription")).unwrap();
    assert_eq!(toolyard(&["check", "--config", &yard.file], "").code, Some(0));
}

/// SB-3: a program runs unconfined only where that is said, and `check` says so too.
#[test]
fn the_host_must_be_said() {
    let yard = Yard::new("program-host", "true", "");
    let checked = toolyard(&["check", "--config", &yard.file], "").stdout;
    assert!(checked.contains("host, unconfined"), "{checked}");
    let config = fs::read_to_string(&yard.file).unwrap().replace("{ sandbox = \"host\" }", "\"allow\"");
    fs::write(&yard.file, config).unwrap();
    let checked = toolyard(&["check", "--config", &yard.file], "").stdout;
    assert!(!checked.contains("unconfined"), "{checked}");
}

/// PO-1b: an argument that is a path is checked before the program starts.
#[test]
fn paths_are_checked_before_it_starts() {
    let schema = "input_schema = { type = \"object\", properties = { file = { type = \"string\" } } }";
    let yard = Yard::new("program-paths", "echo started", &format!("{schema}\npaths = {{ file = \"r\" }}"));
    assert_eq!(yard.result(&json!({"file": "../x"}))["error"]["code"], "permission_denied");
    assert_eq!(text(&yard.result(&json!({"file": "x"}))), "started\n");
}

/// SB-11: what governs a tool is not written by tools, wherever it lies.
#[test]
fn what_governs_is_not_written() {
    let yard = Yard::new("program-governs", "true", "writable = false");
    let config = fs::read_to_string(&yard.file).unwrap().replace("root = \"work\"", "root = \".\"");
    let config = config.replace("[\"sh\", \"./tool.sh\"]", "[\"sh\", \"-c\", \"true\"]");
    fs::write(&yard.file, config).unwrap();
    let write = |path: &str| json!({"call_id": path, "name": "write_file", "arguments": {"path": path, "content": "x"}});
    let calls =
        json!({"calls": [write("toolyard.toml"), write("log.jsonl"), write("log.jsonl.1"), write("free")]});
    let log = Path::new(&yard.file).with_file_name("log.jsonl");
    let args = [
        "run",
        "--report",
        "none",
        "--approve",
        "auto",
        "--config",
        &yard.file,
        "--events",
        log.to_str().unwrap(),
    ];
    let results = toolyard(&args, &calls.to_string()).json();
    let codes: Vec<_> =
        results["results"].as_array().unwrap().iter().map(|one| one["error"]["code"].as_str()).collect();
    assert_eq!(
        codes,
        [Some("permission_denied"), Some("permission_denied"), Some("permission_denied"), None]
    );
}

/// SB-11: nor are the pins of MCP servers, and the trace that is being written.
#[test]
fn pins_and_traces_are_not_written() {
    let place = dir("program-records").canonicalize().unwrap();
    let file = place.join("toolyard.toml");
    let server = "[mcp.gone]\ncommand = \"./no-such-server\"\nrequired = false\npin = \"mcp.lock\"\n";
    fs::write(&file, format!("[workspace]\nroot = \".\"\n{server}")).unwrap();
    let write = |path: &str| json!({"call_id": path, "name": "write_file", "arguments": {"path": path, "content": "x"}});
    let calls = json!({"calls": [write("mcp.lock"), write("trace.json"), write("free")]});
    let (config, trace) = (file.to_str().unwrap(), place.join("trace.json"));
    let args = ["run", "--report", "none", "--approve", "auto", "--config", config, "--trace"];
    let done = toolyard(&[&args[..], &[trace.to_str().unwrap()]].concat(), &calls.to_string());
    let json = done.json();
    let results = json["results"].as_array().unwrap();
    let codes: Vec<_> = results.iter().map(|one| one["error"]["code"].as_str()).collect();
    assert_eq!(codes, [Some("permission_denied"), Some("permission_denied"), None], "{done:?}");
    assert!(!place.join("mcp.lock").exists());
    assert!(fs::read_to_string(trace).unwrap().starts_with('['), "it is a trace");
}
