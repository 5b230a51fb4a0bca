//! Tools that are WebAssembly modules: the same contract as programs have, and what they reach of a workspace.

use crate::{
    child::{Done, fed, program},
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};
use toolyard_test_modules::{
    Access, DESCRIPTORS, DIVIDE, ECHO, ENVIRONMENT, FLOOD, HOG, SPIN, assemble, compiled, component, open,
    print,
};

/// A yard with one tool, a module that lies beside its workspace.
struct Yard {
    place: PathBuf,
}

impl Yard {
    /// `of_tool` goes on with the tool's section, and may begin others.
    fn new(name: &str, module: &[u8], of_tool: &str) -> Self {
        let place = dir(name).canonicalize().unwrap();
        fs::create_dir_all(place.join("work")).unwrap();
        fs::write(place.join("tool.wasm"), module).unwrap();
        let config = format!(
            "[workspace]\nroot = \"work\"\n[program.t]\ndescription = \"A tool\"\nwasm = \"tool.wasm\"\n{of_tool}\n"
        );
        fs::write(place.join("toolyard.toml"), config).unwrap();
        Self { place }
    }

    fn work(&self) -> PathBuf {
        self.place.join("work")
    }

    fn command(&self, args: &[&str]) -> Done {
        let file = self.place.join("toolyard.toml");
        let mut command = program(&[args, &["--config", file.to_str().unwrap()]].concat());
        command.env("XDG_CACHE_HOME", self.place.join("cache"));
        let call = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"b": 1, "a": "x"}}]});
        fed(command, &call.to_string())
    }

    fn result(&self) -> Value {
        let done = self.command(&["run", "--report", "none", "--approve", "auto"]);
        done.json()["results"][0].take()
    }

    /// The number of the error with which it could not open a path; 0 if it could.
    fn opened(&self) -> u64 {
        let result = self.result();
        match result["error"]["code"].as_str() {
            None => 0,
            Some("execution_error") => {
                let text = result["content"][0]["text"].as_str().unwrap();
                text.strip_prefix("exit code ").unwrap_or_else(|| panic!("{result}")).trim().parse().unwrap()
            }
            Some(_) => panic!("{result}"),
        }
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

fn message(result: &Value) -> &str {
    result["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {result}"))
}

/// `PERM` of preview 1.
const PERM: u64 = 63;

/// SB-2: one document in, text out, in both forms of a module.
#[test]
fn a_module_reads_its_arguments_and_prints_its_result() {
    let echo = assemble(ECHO);
    for (name, module) in [("module-text", &echo), ("module-component", &component(&echo))] {
        assert_eq!(text(&Yard::new(name, module, "").result()), r#"{"b":1,"a":"x"}"#);
    }
    let yard = Yard::new("module-json", &echo, "output = \"json\"");
    assert_eq!(yard.result()["structured"], json!({"b": 1, "a": "x"}));
    let yard = Yard::new("module-no-json", &assemble(&print(1, "3 words", 0)), "output = \"json\"");
    assert_eq!(yard.result()["error"]["code"], "output_invalid");
}

/// SB-2: its variables are those of the contract and of the configuration.
#[test]
fn a_module_inherits_nothing() {
    let yard = Yard::new("module-variables", &assemble(ENVIRONMENT), "env = { LANG = \"C\" }");
    let result = yard.result();
    let names = text(&result).split_terminator('\0').map(|variable| variable.split('=').next().unwrap());
    let expect = ["LANG", "TOOLYARD_CALL_ID", "TOOLYARD_TOOL", "TOOLYARD_ATTEMPT", "TOOLYARD_DEADLINE_MS"];
    assert!(names.eq(expect), "{result}");
}

/// SB-2: an exit code is a failure with what was printed; standard error is streamed; 75 may pass.
#[test]
fn an_exit_code_is_a_failure() {
    let yard = Yard::new("module-fails", &assemble(&print(2, "looking\n", 3)), "");
    let log = yard.place.join("log.jsonl");
    let args = ["run", "--report", "none", "--approve", "auto", "--events", log.to_str().unwrap()];
    let result = yard.command(&args).json()["results"][0].take();
    assert_eq!(text(&result), "exit code 3\nlooking\n");
    let events = fs::read_to_string(log).unwrap();
    assert!(events.lines().any(|line| line.contains("tool.output_delta") && line.contains("looking\\n")));
    let busy = print(1, r#"{"error":{"code":"busy","message":"locked"}}"#, 75);
    let result = Yard::new("module-busy", &assemble(&busy), "").result();
    assert_eq!((&result["error"]["code"], message(&result)), (&json!("transient"), "busy: locked"));
}

/// SB-2, SB-8: a trap and a limit leave the effect unknown, unless the tool only reads, and are named.
#[test]
fn traps_and_limits_are_named() {
    let ran_into = |limit: &str| format!("the program ran into its limit of {limit}");
    for (name, module, limits, expect) in [
        (
            "divides",
            DIVIDE,
            "",
            "the program was ended by a trap: integer divide by zero, in 'divide'".to_owned(),
        ),
        ("hogs", HOG, "memory = \"2MiB\"", ran_into("memory")),
        ("hogs-alone", HOG, "memory_per_process = \"2MiB\"", ran_into("memory")),
        ("spins", SPIN, "cpu_time = \"100ms\"", ran_into("CPU time")),
        ("opens", DESCRIPTORS, "open_files = 16", ran_into("open files")),
        ("floods", FLOOD, "processes = 1", ran_into("output")),
    ] {
        for (effects, outcome) in [("write", "unknown"), ("read", "failed")] {
            let more = format!("side_effects = \"{effects}\"\n[policy.rules]\nt = {{ {limits} }}");
            let result = Yard::new(&format!("module-{name}-{effects}"), &assemble(module), &more).result();
            assert_eq!(message(&result), expect);
            assert_eq!(
                (&result["error"]["code"], &result["error"]["outcome"]),
                (&json!("execution_error"), &json!(outcome))
            );
        }
    }
}

/// SB-7, SB-9: a module that goes on for ever ends at its time, with what it said so far, and with what it used.
#[test]
fn a_module_that_spins_ends_at_its_time() {
    let module = print(2, "so far\n", 0).replace("(call $exit (i32.const 0))", "(loop $more (br $more))");
    let yard =
        Yard::new("module-timeout", &assemble(&module), "[policy.rules]\nt = { wall_time = \"300ms\" }");
    let result = yard.result();
    assert_eq!(result["error"]["code"], "timeout", "{result}");
    assert!(result.to_string().contains("so far"), "{result}");
    let usage = &result["error"]["usage"];
    assert!(usage["cpu_ms"].as_u64() >= Some(100), "{result}");
    // One page of memory, and no table.
    assert_eq!(usage["memory_peak_bytes"], 65_536, "{result}");
}

/// SM-2: a module reaches what its call may use, by its path in the workspace, and writes only what it may write.
#[test]
fn a_module_reaches_what_is_granted() {
    for (name, path, access, effects, fs_grants, expect) in [
        ("reads", "r/file", Access::Read, "read", "\"r:.\"", 0),
        ("reads-only", "r/file", Access::Write, "write", "\"r:.\"", PERM),
        ("does-not-write", "r/file", Access::Write, "read", "\"rw:.\"", PERM),
        ("writes", "r/file", Access::Write, "write", "\"rw:.\"", 0),
        ("makes", "r/made", Access::Create, "write", "\"rw:.\"", 0),
    ] {
        let more = format!("side_effects = \"{effects}\"\n[policy.capabilities]\nfs = [{fs_grants}]");
        let yard = Yard::new(&format!("module-{name}"), &assemble(&open(path, access)), &more);
        fs::create_dir_all(yard.work().join("r")).unwrap();
        fs::write(yard.work().join("r/file"), "text").unwrap();
        assert_eq!(yard.opened(), expect, "{name}");
    }
}

/// SM-2: nothing beside it is reached, by a path or a link.
#[cfg(unix)]
#[test]
fn a_module_does_not_leave_what_is_granted() {
    for (name, path) in
        [("up", "../tool.wasm"), ("link", "r/link"), ("absolute", "/etc/passwd"), ("beside", "../s/file")]
    {
        let more = "side_effects = \"write\"\n[policy.capabilities]\nfs = [\"rw:r\"]";
        let yard = Yard::new(&format!("module-{name}"), &assemble(&open(path, Access::Read)), more);
        for directory in ["r", "s"] {
            fs::create_dir_all(yard.work().join(directory)).unwrap();
        }
        fs::write(yard.work().join("s/file"), "text").unwrap();
        let _ = fs::remove_file(yard.work().join("r/link"));
        std::os::unix::fs::symlink("../s/file", yard.work().join("r/link")).unwrap();
        assert_ne!(yard.opened(), 0, "{name}");
    }
}

/// SB-4: a file that is granted for writing is found by `check`, before any call is refused for it.
#[test]
fn check_finds_a_file_that_a_module_cannot_be_given() {
    let more = "side_effects = \"write\"\n[policy.capabilities]\nfs = [\"rw:x\"]";
    let yard = Yard::new("module-check-file", &assemble(ECHO), more);
    fs::write(yard.work().join("x"), "text").unwrap();
    let why = "sandbox 'wasm' cannot be given 'x', which is a file: a module writes in directories, so grant its \
               directory";
    let warning = format!("warning: tool 't': {why}: its calls will fail with sandbox_error");
    let checked = yard.command(&["check"]).stdout;
    assert!(checked.lines().any(|line| line == warning), "{checked}");
    assert!(message(&yard.result()).starts_with(why));
}

/// SM-2: a file that is an argument is there for reading, and nothing beside it; what cannot be given is refused by name.
#[test]
fn a_file_by_itself_is_there_to_read() {
    let schema = "input_schema = { type = \"object\", properties = { a = { type = \"string\" } } }";
    let yard = |name: &str, path: &str, mode: &str| {
        let more = format!("side_effects = \"write\"\n{schema}\npaths = {{ a = \"{mode}\" }}");
        let yard = Yard::new(name, &assemble(&open(path, Access::Read)), &more);
        fs::write(yard.work().join("x"), "text").unwrap();
        fs::write(yard.work().join("y"), "text").unwrap();
        yard
    };
    assert_eq!(yard("module-file", "x", "r").opened(), 0);
    assert_ne!(yard("module-beside", "y", "r").opened(), 0);
    let result = yard("module-file-rw", "x", "rw").result();
    let expect = "sandbox 'wasm' cannot be given 'x', which is a file: a module writes in directories, so grant its \
                  directory: the call was not run";
    assert_eq!((&result["error"]["code"], message(&result)), (&json!("sandbox_error"), expect));
}

/// SB-11: what governs is not written by modules either, nor what git would run; what lies beside it is.
#[test]
fn what_governs_is_not_written_by_modules() {
    for (name, path, expect) in [
        ("config", "toolyard.toml", PERM),
        ("made", "made", PERM),
        ("git-config", ".git/config", PERM),
        ("git-hook", ".git/hooks/pre-commit", PERM),
        ("git-objects", ".git/objects/made", PERM),
        ("source", "src/deep/file", PERM),
    ] {
        let yard = Yard::new(&format!("module-governs-{name}"), &assemble(&open(path, Access::Create)), "");
        for directory in [".git/hooks", ".git/objects", "src/deep"] {
            fs::create_dir_all(yard.work().join(directory)).unwrap();
        }
        fs::write(yard.work().join(".git/config"), "[core]\n").unwrap();
        // The configuration in force lies in the workspace.
        let config = fs::read_to_string(yard.place.join("toolyard.toml")).unwrap();
        let inside =
            config.replace("root = \"work\"", "root = \".\"").replace("\"tool.wasm\"", "\"../tool.wasm\"");
        let file = yard.work().join("toolyard.toml");
        fs::write(&file, &inside).unwrap();
        let mut command =
            program(&["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()]);
        command.env("XDG_CACHE_HOME", yard.place.join("cache")).current_dir(yard.work());
        let call = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {}}]}).to_string();
        let done = fed(command, &call);
        // It opens below its first directory, which is the root.
        assert_eq!(text(&done.json()["results"][0]), format!("exit code {expect}"), "{name}");
        assert_eq!(fs::read_to_string(&file).unwrap(), inside);
    }
}

/// SB-11: a program with a library of its own writes beside what governs, and takes none of that there.
#[test]
fn what_lies_beside_is_written_as_granted() {
    let Some(module) = compiled() else { return };
    let tries: [(&str, &[&str], bool); 6] = [
        ("write", &["write", "src/deep/made"], true),
        ("rename", &["rename", ".git/config", "src/gone"], false),
        ("link", &["link", ".git/config", "src/alias"], false),
        ("directory", &["rename", ".git", "src/git"], false),
        ("objects", &["write", ".git/objects/made"], true),
        ("hook", &["write", ".git/hooks/pre-commit"], false),
    ];
    for (name, arguments, works) in tries {
        let yard = Yard::new(&format!("module-beside-{name}"), &module, &format!("args = {arguments:?}"));
        for directory in [".git/hooks", ".git/objects", "src/deep"] {
            fs::create_dir_all(yard.work().join(directory)).unwrap();
        }
        fs::write(yard.work().join(".git/config"), "[core]\n").unwrap();
        let result = yard.result();
        assert_eq!(result["error"].is_null(), works, "{name}: {result}");
        assert_eq!(fs::read_to_string(yard.work().join(".git/config")).unwrap(), "[core]\n");
    }
}

/// SB-1: a file that is no module is a mistake in the configuration, found before anything runs; so is one that is not
/// there, and a module where tools may write it.
#[test]
fn what_is_no_module_is_a_mistake() {
    let yard = Yard::new("module-none", b"#!/bin/sh\n", "");
    for command in ["run", "check"] {
        let done = yard.command(&[command]);
        let expect = "tool.wasm' cannot be run: it is no WebAssembly module: it does not begin like one";
        assert!(done.code == Some(2) && done.stderr.contains(expect), "{command}: {done:?}");
    }
    fs::remove_file(yard.place.join("tool.wasm")).unwrap();
    let done = yard.command(&["check"]);
    assert!(done.code == Some(2) && done.stderr.contains("wasm: there is no file '"), "{done:?}");
    let yard = Yard::new("module-writable", &assemble(ECHO), "");
    let config = fs::read_to_string(yard.place.join("toolyard.toml")).unwrap();
    fs::rename(yard.place.join("tool.wasm"), yard.work().join("tool.wasm")).unwrap();
    fs::write(yard.place.join("toolyard.toml"), config.replace("tool.wasm", "work/tool.wasm")).unwrap();
    let done = yard.command(&["check"]);
    assert!(done.code == Some(2) && done.stderr.contains("move it elsewhere"), "{done:?}");
}

/// SB-4: `check` says what is kept, and compiled modules are kept outside of what tools may write.
#[test]
fn check_says_what_is_kept() {
    let limits =
        "[policy.rules]\nt = { memory = \"2MiB\", cpu_time = \"1s\", open_files = 8, processes = 1 }";
    let yard = Yard::new("module-check", &assemble(ECHO), limits);
    let done = yard.command(&["check"]);
    let line = "in wasm        modules with the directories that are granted, no network and no processes; limits wall \
                time, output, memory, CPU time, open files and processes";
    assert!(done.stdout.contains(line) && !done.stdout.contains("will fail"), "{done:?}");
    let holds_code = |cache: &Path| fs::read_dir(cache.join("toolyard/wasm")).is_ok();
    assert!(holds_code(&yard.place.join("cache")));
    let config = fs::read_to_string(yard.place.join("toolyard.toml")).unwrap();
    let yard = Yard::new("module-check-inside", &assemble(ECHO), "writable = true");
    fs::write(
        yard.place.join("toolyard.toml"),
        config.replace("\"work\"", "\".\"").replace("wasm =", "writable = true\nwasm ="),
    )
    .unwrap();
    assert_eq!(yard.command(&["check"]).code, Some(0));
    assert!(!holds_code(&yard.place.join("cache")));
}
