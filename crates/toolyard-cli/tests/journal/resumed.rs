//! `toolyard run --journal`: the same response in the same session runs once, whatever ends the program (JR-5, JR-8).

use crate::child::{Done, fed, program};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// A workspace with a program `note`, which writes its text into a file and, if it is told to, waits for ever, once
/// whoever started it knows that it runs.
struct Yard {
    directory: TempDir,
}

const CONFIG: &str = r#"
[confirmation]
default = { read = "auto", write = "auto", execute = "auto", network = "auto" }
[program.note]
description = "Writes a line"
command = ["sh", "-c", "cat >> ../effects; echo >> ../effects; if [ -e ../waits ]; then cat ../never; fi"]
side_effects = "write"
[policy.rules.note]
sandbox = "host"
"#;

impl Yard {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let never = directory.path().join("never");
        assert!(Command::new("mkfifo").arg(never).status().unwrap().success());
        fs::create_dir(directory.path().join("work")).unwrap();
        fs::write(directory.path().join("toolyard.toml"), CONFIG).unwrap();
        Self { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program, which reads its response from standard input.
    fn run(&self, args: &[&str]) -> Command {
        let mut command = program(&["run", "--quiet", "--session", "s"]);
        let place = |name: &str| self.file(name).into_os_string();
        command.arg("--config").arg(place("toolyard.toml")).arg("--workspace").arg(place("work"));
        command.arg("--journal").arg(place("agent.journal")).args(args);
        command
    }

    fn done(&self, args: &[&str], input: &str) -> Done {
        fed(self.run(args), input)
    }

    /// Kills the program when the call that waits has begun.
    fn killed(&self, input: &str) {
        fs::write(self.file("waits"), "").unwrap();
        let mut child = self.run(&[]).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        while self.effects().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended: {:?}", child.wait_with_output());
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(self.file("waits")).unwrap();
    }

    fn effects(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("effects")).unwrap_or_default();
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn response(ids: &[&str]) -> String {
    let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "note", "input": {"text": id}});
    json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>()}).to_string()
}

/// The ids of the results, and which of them are errors.
fn results(done: &Done) -> Vec<(String, bool)> {
    let all = done.json();
    let of = |result: &Value| {
        (result["tool_use_id"].as_str().unwrap().to_owned(), result["is_error"] == Value::Bool(true))
    };
    all["content"].as_array().unwrap().iter().map(of).collect()
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok() || Path::new("/usr/bin").join(program).exists()
}

/// JR-5, JR-8: killed while a call runs, the same command gives an `interrupted`, runs nothing twice, and gives the same
/// results however often it is run.
#[test]
fn the_same_command_goes_on() {
    assert!(is_installed("mkfifo"));
    let yard = Yard::new();
    let input = response(&["a", "b"]);
    yard.killed(&input);
    assert_eq!(yard.effects(), [json!({"text": "a"})]);
    let first = yard.done(&[], &input);
    assert_eq!(first.code, Some(1), "{first:?}");
    assert_eq!(results(&first), [("a".to_owned(), true), ("b".to_owned(), true)]);
    assert!(first.stdout.contains("nobody knows what it has done"), "{first:?}");
    let second = yard.done(&[], &input);
    assert_eq!((second.code, &second.stdout), (first.code, &first.stdout));
    assert_eq!(yard.effects(), [json!({"text": "a"})]);
    // Another response in the session is another turn.
    let other = yard.done(&[], &response(&["c"]));
    assert_eq!((other.code, results(&other)), (Some(0), vec![("c".to_owned(), false)]));
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "c"})]);
}

/// JR-8: `--resume` needs no response; while one is open, another one in its session is refused.
#[test]
fn what_is_open_is_finished_first() {
    let yard = Yard::new();
    yard.killed(&response(&["a", "b"]));
    let refused = yard.done(&[], &response(&["c"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("finish it first with --session s --resume"), "{refused:?}");
    let config = CONFIG.replace("[confirmation]", "[session]\non_interrupted = \"continue\"\n[confirmation]");
    fs::write(yard.file("toolyard.toml"), config).unwrap();
    let resumed = yard.done(&["--resume", "--to", "anthropic"], "");
    assert_eq!(results(&resumed), [("a".to_owned(), true), ("b".to_owned(), false)]);
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "b"})]);
    let nothing = yard.done(&["--resume"], "");
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("has left nothing open"), "{nothing:?}");
    assert!(yard.done(&[], &response(&["c"])).code == Some(0));
}

/// JR-8: what cannot go on call by call is refused, and says what to do.
#[test]
fn episodes_and_toolsets_have_no_journal() {
    let yard = Yard::new();
    let episodes = yard.done(&[], "{\"id\": \"e\", \"turns\": []}\n");
    assert_eq!(episodes.code, Some(2), "{episodes:?}");
    assert!(episodes.stderr.contains("--continue FILE"), "{episodes:?}");
    let mut toolset = serde_json::from_str::<Value>(&response(&["a"])).unwrap();
    toolset["content"][0]["toolset_name"] = json!("browser");
    let toolset = yard.done(&[], &toolset.to_string());
    assert_eq!(toolset.code, Some(2), "{toolset:?}");
    assert!(yard.effects().is_empty());
}
