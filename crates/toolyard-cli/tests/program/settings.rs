//! Configuration, approval, tools.

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::fs;

fn write() -> String {
    json!({"calls": [{"call_id": "w", "name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]})
        .to_string()
}

/// Runs a write in a fresh workspace with this configuration; also returns whether the file exists.
fn run(name: &str, config: &str, more: &[&str]) -> (Done, bool) {
    let dir = dir(name);
    let file = dir.join("toolyard.toml");
    fs::write(&file, config).unwrap();
    let mut args = vec!["run", "--report", "none", "--config", file.to_str().unwrap()];
    args.extend(more);
    (toolyard(&args, &write()), dir.join("a.txt").exists())
}

const HERE: &str = "[workspace]\nroot = \".\"\n";

/// PO-1: nothing but reads runs unless it is allowed.
#[test]
fn a_write_is_refused_unless_it_is_allowed() {
    let (done, written) = run("unasked", HERE, &[]);
    assert_eq!((done.code, written), (Some(1), false));
    let error = &done.json()["results"][0]["error"];
    assert_eq!(error["code"], "user_denied");
    assert!(error["message"] == "This operation needs approval and nobody can be asked.");
    let line = "toolyard: 1 call refused because write calls need approval: to allow them, use --approve auto, or \
                [confirmation] default = { write = \"auto\" } in toolyard.toml\n";
    assert_eq!(done.stderr, line);

    let (done, written) = run("approved", HERE, &["--approve", "auto"]);
    assert_eq!((done.code, written), (Some(0), true));
    let (done, written) =
        run("configured", &format!("{HERE}[confirmation]\ndefault = {{ write = \"auto\" }}"), &[]);
    assert_eq!((done.code, written), (Some(0), true));
    let (done, written) =
        run("for-one", &format!("{HERE}[confirmation.per_tool]\nwrite_file = \"auto\""), &[]);
    assert_eq!((done.code, written), (Some(0), true));
}

#[test]
fn a_denial_is_a_denial() {
    let (done, written) = run("denied", HERE, &["--approve", "deny"]);
    assert_eq!((done.code, written), (Some(1), false));
    assert_eq!(done.stderr, "toolyard: user_denied: w 'write_file': User denied this operation.\n");
    let config = format!("{HERE}[confirmation]\ndefault = {{ write = \"deny\" }}");
    let (done, written) = run("denied-by-configuration", &config, &["--approve", "auto"]);
    assert_eq!((done.code, written), (Some(1), false));
}

#[test]
fn what_is_not_enabled_is_not_there() {
    let (done, written) =
        run("disabled", &format!("{HERE}[builtin]\nenable = [\"echo\"]"), &["--approve", "auto"]);
    assert_eq!((done.code, written), (Some(1), false));
    assert_eq!(
        done.stderr,
        "toolyard: not_found: w 'write_file': Tool 'write_file' not found. Available: [echo]\n"
    );
}

#[test]
fn check_shows_how_each_tool_was_classified_and_why() {
    let file = dir("check").join("toolyard.toml");
    let config = "[tools.write_file]\nclass = \"concurrent\"\ntimeout = \"5s\"\nmax_concurrency = 2\n\
                  [tools.patch_file]\nside_effects = \"read\"\n[session]\nmax_in_flight = 3\n\
                  tree_max_in_flight = 9\npriority = \"urgent\"\n";
    fs::write(&file, config).unwrap();
    let done = toolyard(&["check", "--config", file.to_str().unwrap()], "");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let has = |line: &str| assert!(done.stdout.lines().any(|found| found == line), "{line}\n{}", done.stdout);
    has("write_file  concurrent  side effects: write, promoted  prompt    5s       2      yes");
    has("read_file   read        side effects: read             auto      60s      -      yes");
    has("max in flight  3");
    has("max in a tree  9");
    has("priority       urgent");
    has("warning: tool 'patch_file': its author declares side effects write, the configuration sets read");
    has("note: max_in_flight 3 is less than the width of the widest pool, 20");
}

/// RT-1, CB-2, RT-10, RT-11, ID-3: the effective settings of each tool, from whatever source.
#[test]
fn check_shows_the_resilience_settings_of_each_tool() {
    let file = dir("check-resilience").join("toolyard.toml");
    let config = "[retry]\nmax_attempts = 2\n[breaker]\nconsecutive = 4\n[budget]\nturn = 20\n\
                  tree = { calls = 0, cost = 9 }\n\
                  [tools.echo]\nretry = false\nbreaker = false\nbackend = \"api\"\nrate = \"5/s burst 10\"\n\
                  budget = 7\ntimeout_grace = \"2s\"\nkey_conflict = \"fail\"\n\
                  [tools.patch_file]\nretry.base = \"1s\"\n";
    fs::write(&file, config).unwrap();
    let done = toolyard(&["check", "--config", file.to_str().unwrap()], "");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let has = |line: &str| assert!(done.stdout.lines().any(|found| found == line), "{line}\n{}", done.stdout);
    has("budgets        turn 20 calls, session -, tree 0 calls, cost 9");
    let breaker = "5 failed and 50% in 60s or 4 in a row, open 30–300s";
    let all = |tool: &str, attempts: &str| {
        has(&format!(
            "{tool:10}  {attempts:22}  {breaker}  -         -             0     -        -      join"
        ));
    };
    has(
        "echo        1                       off                                                  api       5/s burst 10  0     7 calls  2s     fail",
    );
    all("read_file", "2: 100–150ms");
    all("patch_file", "2: 1–1.5s if unchanged");
    has("note: [budget] tree is 0 calls: nothing can run");
}

#[test]
fn scopes_of_limits_and_serial_calls_are_shown() {
    let file = dir("scopes").join("toolyard.toml");
    let config = "[tools.write_file]\nserial_scope = \"db\"\n\
                  [tools.echo]\nmax_concurrency = 2\nlimit_scope = \"tree\"\n\
                  [tools.list_dir]\nmax_concurrency = 3\nlimit_scope = \"engine\"\n";
    fs::write(&file, config).unwrap();
    for command in ["check", "tools"] {
        let shown = toolyard(&[command, "--config", file.to_str().unwrap()], "").stdout;
        let line = |tool: &str| shown.lines().find(|line| line.starts_with(tool)).unwrap().to_owned();
        assert!(line("write_file").contains("  serial (db)  "), "{shown}");
        assert!(line("echo").contains("  2 per tree  "), "{shown}");
        assert!(line("list_dir").contains("  3 in total  "), "{shown}");
    }
}

#[test]
fn tools_are_declared_as_each_provider_wants_them() {
    let tools = |shape: &str| toolyard(&["tools", "--as", shape], "").json();
    let names = |tools: &Value, pointer: &str| -> Vec<String> {
        let name = |tool: &Value| tool.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        tools.as_array().unwrap().iter().map(name).collect()
    };
    let expect = ["echo", "list_dir", "patch_file", "read_file", "write_file"];
    assert_eq!(names(&tools("openai"), "/function/name"), expect);
    assert_eq!(names(&tools("openai-responses"), "/name"), expect);
    assert_eq!(names(&tools("anthropic"), "/name"), expect);
    assert_eq!(names(&tools("gemini")["functionDeclarations"], "/name"), expect);
    assert_eq!(names(&tools("mcp"), "/name"), expect);
    let table = toolyard(&["tools"], "").stdout;
    assert!(
        table.contains("\nread_file   read    read          auto      60s      -      Reads a text file"),
        "{table}"
    );
}

#[test]
fn help_and_version_end_well() {
    let version = toolyard(&["--version"], "");
    assert_eq!((version.code, version.stdout.starts_with("toolyard 0.")), (Some(0), true));
    for command in ["run", "plan", "check"] {
        let help = toolyard(&[command, "--help"], "");
        assert_eq!((help.code, help.stdout.contains("130  interrupted")), (Some(0), true), "{command}");
    }
}

#[test]
fn help_explains_what_cannot_be_guessed() {
    let explains = |command: &str, text: &str| {
        let help = toolyard(&[command, "--help"], "").stdout;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(text), "{text}\n{help}");
    };
    explains("run", "a line that cannot be read is reported on stderr and does not affect other lines");
    explains("run", "the sum of the calls' run times, measured while they ran concurrently");
    explains("run", "sum_of_run_times_ms");
    explains("tools", "with gemini an object");
}

/// I15, V5, PO-7: a secret that the configuration names is in no result, event or report; text that looks like one is
/// in results only.
#[test]
fn secrets_stay_out_of_what_is_shown() {
    let dir = dir("redaction");
    let (file, events) = (dir.join("toolyard.toml"), dir.join("events.jsonl"));
    fs::write(dir.join("secret"), "sword fish\n").unwrap();
    fs::write(&file, format!("{HERE}[redaction]\nsecrets = [\"file:secret\", \"env:TOOLYARD_TEST_SECRET\"]"))
        .unwrap();
    let text = "a sword fish, hunter-two and sk_live_4eC39HqLyjWDarjtT1zdp7dc";
    let calls = json!({"calls": [
        {"call_id": "e", "name": "echo", "arguments": {"text": text}},
        {"call_id": "m", "name": "read_file", "arguments": {"path": text}},
    ]});
    let args = ["run", "--config", file.to_str().unwrap(), "--events", events.to_str().unwrap()];
    let mut child = crate::child::program(&args).env("TOOLYARD_TEST_SECRET", "hunter-two").spawn().unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &calls).unwrap();
    let output = child.wait_with_output().unwrap();
    let results = String::from_utf8(output.stdout).unwrap();
    let recorded = String::from_utf8([output.stderr, fs::read(&events).unwrap()].concat()).unwrap();
    assert!(results.contains("a [redacted], [redacted] and sk_live_4eC39HqLyjWDarjtT1zdp7dc"), "{results}");
    assert!(recorded.contains("a [redacted], [redacted] and [redacted: stripe key]"), "{recorded}");
    assert!(!recorded.contains("sk_live"), "{recorded}");
    for secret in ["sword", "hunter"] {
        assert!(!results.contains(secret) && !recorded.contains(secret), "{secret}: {results} {recorded}");
    }
}

/// PO-7: a file with what looks like a password is patched and written as it was read.
#[test]
fn a_file_is_written_as_it_was_read() {
    let dir = dir("redaction-round-trip");
    let (file, work) = (dir.join("toolyard.toml"), dir.join("work"));
    fs::create_dir_all(&work).unwrap();
    fs::write(&file, format!("{HERE}[confirmation]\ndefault = {{ write = \"auto\" }}\n")).unwrap();
    let source = "password=\"hunter-2x\"\npwd = \"k3yK3yK3y\"\n";
    fs::write(work.join("app.py"), source).unwrap();
    let (old, new) = ("password=\"hunter-2x\"", "password=\"hunter-3x\"");
    let calls = json!({"calls": [
        {"call_id": "r", "name": "read_file", "arguments": {"path": "app.py"}},
        {"call_id": "p", "name": "patch_file", "arguments": {"path": "app.py", "old": old, "new": new}},
        {"call_id": "w", "name": "write_file", "arguments": {"path": "copy.py", "content": source}},
    ]});
    let args = ["run", "--config", file.to_str().unwrap(), "--workspace", work.to_str().unwrap()];
    let done = toolyard(&args, &calls.to_string());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("hunter-2x") && done.stdout.contains("k3yK3yK3y"), "{done:?}");
    assert_eq!(fs::read_to_string(work.join("copy.py")).unwrap(), source);
    assert_eq!(fs::read_to_string(work.join("app.py")).unwrap(), source.replace("2x", "3x"));
}

/// I15, PO-7: patterns can be disabled, or applied to results too; a secret is named in the configuration, never written there, and must exist.
#[test]
fn redaction_is_configured() {
    let of = |config: &str| {
        let file = dir("redaction-set").join("toolyard.toml");
        fs::write(&file, format!("{HERE}{config}")).unwrap();
        let calls =
            json!({"calls": [{"call_id": "e", "name": "echo", "arguments": {"text": "password=abc"}}]});
        toolyard(&["run", "-q", "--config", file.to_str().unwrap()], &calls.to_string())
    };
    assert!(of("").stdout.contains("password=abc"));
    assert!(of("[redaction]\nresults = true").stdout.contains("password=[redacted: password]"));
    assert!(of("[redaction]\npatterns = false\nresults = true").stdout.contains("password=abc"));
    let refused = |secret: &str| {
        let done = of(&format!("[redaction]\nsecrets = [\"{secret}\"]"));
        assert_eq!(done.code, Some(2), "{done:?}");
        done.stderr
    };
    let line = refused("swordfish");
    assert!(line.contains("env:NAME") && !line.contains("swordfish"), "{line}");
    assert!(refused("env:TOOLYARD_NO_SUCH_VARIABLE").contains("TOOLYARD_NO_SUCH_VARIABLE"));
    assert!(refused("file:no-such-file").contains("no-such-file"));
}
