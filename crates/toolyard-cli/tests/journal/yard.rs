//! A place for programs that are killed in the middle of a call, and go on.

use crate::child::{Done, fed, program};
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command},
};
use tempfile::TempDir;

/// A workspace with a program `note`, which writes its text into a file and, if it is told to, waits for ever, once
/// whoever started it knows that it runs.
pub(crate) struct Yard {
    directory: TempDir,
}

macro_rules! note {
    () => {
        r#"
[program.note]
description = "Writes a line"
command = ["sh", "-c", "line=$(cat); printf '%s\\n' \"$line\" >> ../effects; if [ -e ../waits ]; then cat ../never; fi"]
side_effects = "write"
[policy.rules.note]
sandbox = "host"
"#
    };
}

/// The program, which writes one line at a time, so that several of them do not share one.
pub(crate) const NOTE: &str = note!();

/// The same, in a place where nobody is asked.
pub(crate) const CONFIG: &str = concat!(
    r#"
[confirmation]
default = { read = "auto", write = "auto", execute = "auto", network = "auto" }"#,
    note!()
);

impl Yard {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let never = directory.path().join("never");
        assert!(Command::new("mkfifo").arg(never).status().unwrap().success());
        fs::create_dir(directory.path().join("work")).unwrap();
        fs::write(directory.path().join("toolyard.toml"), CONFIG).unwrap();
        Self { directory }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program, which reads its response from standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Command {
        let mut command = program(&["run", "--quiet", "--session", "s"]);
        let place = |name: &str| self.file(name).into_os_string();
        command.arg("--config").arg(place("toolyard.toml")).arg("--workspace").arg(place("work"));
        command.arg("--journal").arg(place("agent.journal")).args(args);
        command
    }

    pub(crate) fn done(&self, args: &[&str], input: &str) -> Done {
        fed(self.run(args), input)
    }

    /// Kills the program when the call that waits has begun.
    pub(crate) fn killed(&self, input: &str) {
        self.killed_after(input, |_| {});
    }

    /// The same, once something was done to the program.
    pub(crate) fn killed_after(&self, input: &str, before: impl FnOnce(&Child)) {
        fs::write(self.file("waits"), "").unwrap();
        let mut child = self.run(&[]).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        while self.effects().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended: {:?}", child.wait_with_output());
            std::thread::yield_now();
        }
        before(&child);
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(self.file("waits")).unwrap();
    }

    pub(crate) fn effects(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("effects")).unwrap_or_default();
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn response(ids: &[&str]) -> String {
    let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "note", "input": {"text": id}});
    json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>()}).to_string()
}
