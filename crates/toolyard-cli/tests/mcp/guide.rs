//! What the guide says about MCP servers, done as written, with the servers that it names.

use crate::{
    client::{Person, Yard, text},
    place::dir,
    real,
};
use serde_json::{Value, json};
use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Stdio},
};
use tokio::process::Command;

/// The text of a section of the guide's page about MCP.
fn section(title: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/mcp.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(&format!("# {title}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// The first block of a language in a section.
fn block<'a>(section: &'a str, language: &str) -> &'a str {
    let (_, block) = section.split_once(&format!("\n```{language}\n")).unwrap();
    block.split_once("\n```").unwrap().0
}

/// A machine on which `toolyard`, `npx` and `uvx` are found. The latter two know only the packages that are installed
/// for the tests, by their exact names.
struct Machine {
    dir: PathBuf,
    path: String,
}

impl Machine {
    /// `None` if the servers are not installed.
    fn open(name: &str, python_server: &str) -> Option<Self> {
        let (script, program) = (real::script("filesystem")?, real::program(python_server)?);
        let packages = Path::new(&script).ancestors().nth(4).unwrap().display();
        let python = Path::new(&program).ancestors().nth(2).unwrap().display();
        let dir = dir(name).canonicalize().unwrap();
        let bin = dir.join("bin");
        for inner in ["bin", "work", "elsewhere"] {
            fs::create_dir(dir.join(inner)).unwrap();
        }
        let npx = format!(
            r#"[ "$1" = -y ] || exit 64; at={packages}/$2; shift 2; exec node "$at/dist/index.js" "$@""#
        );
        let uvx = format!(
            r#"ls -d {python}/lib/*/site-packages/"$(echo "$1" | tr - _)"-*.dist-info >&2 || exit 65
            program={python}/bin/$1; shift; exec "$program" "$@""#
        );
        for (name, lines) in [("npx", npx), ("uvx", uvx)] {
            fs::write(bin.join(name), format!("#!/bin/sh\n{lines}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(dir.join("work/a.txt"), "hello").unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_toolyard")).parent().unwrap();
        let path = format!("{}:{}:{}", bin.display(), built.display(), env::var("PATH").unwrap());
        Some(Self { dir, path })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The guide's text with this machine's paths.
    fn here(&self, text: &str) -> String {
        text.replace("/path/to", self.dir.to_str().unwrap())
    }

    /// A command that runs in this directory.
    fn command(&self, name: &str, cwd: &str) -> process::Command {
        let mut command = process::Command::new(name);
        command.current_dir(self.file(cwd)).env("PATH", &self.path).env_remove("TOOLYARD_LOG");
        command
    }

    /// Starts `toolyard` in the background.
    fn toolyard(&self, cwd: &str, args: &[&str]) -> process::Child {
        let mut command = self.command("toolyard", cwd);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// The output of a program, which must succeed.
fn printed(program: process::Child) -> String {
    let done = program.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// The row of a tool in the output of `toolyard tools`, as words.
fn row<'a>(table: &'a str, tool: &str) -> Vec<&'a str> {
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.find(|row| row.first() == Some(&tool)).unwrap_or_else(|| panic!("{tool} is not in {table}"))
}

/// The guide, "In front of your MCP servers": the configuration for two servers, and the client's entry, started in
/// another directory. A read passes, a call to an untrusted server needs approval, and the record is whole.
#[tokio::test]
async fn two_servers_stand_behind_the_program_as_the_guide_says() {
    let Some(machine) = Machine::open("guide-front", "git") else { return };
    let page = section("In front of your MCP servers");
    let config = machine.file("toolyard.toml");
    fs::write(&config, machine.here(block(&page, "toml"))).unwrap();
    assert!(machine.command("git", "work").args(["init", "--quiet"]).status().unwrap().success());

    let client: Value = serde_json::from_str(&machine.here(block(&page, "json"))).unwrap();
    let server = &client["mcpServers"]["toolyard"];
    let mut command = machine.command(server["command"].as_str().unwrap(), "elsewhere");
    command.args(server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()));
    let person = Person { answer: Some("yes"), ..Person::default() };
    let asked = person.asked.clone();
    let mut yard = Yard::started(Command::from(command), machine.dir.clone(), person).await;

    let listed = yard.client.list_all_tools().await.unwrap();
    for tool in ["files__read_file", "git__git_status"] {
        assert!(listed.iter().any(|listed| listed.name == tool), "{tool} is not served");
    }
    let work = machine.file("work");
    let read = yard.call("files__read_file", json!({"path": work.join("a.txt")})).await.unwrap();
    assert_eq!((text(&read), asked.lock().unwrap().len()), ("hello", 0));
    let status = yard.call("git__git_status", json!({"repo_path": work})).await.unwrap();
    assert!(text(&status).contains("a.txt"), "{}", text(&status));
    assert_eq!(asked.lock().unwrap().len(), 1);
    yard.client.close().await.unwrap();
    assert_eq!(yard.ended().await, Some(0));

    let audit = printed(machine.toolyard("work", &["audit", machine.file("log.jsonl").to_str().unwrap()]));
    assert!(audit.contains("git__git_status") && audit.contains("\nwhole: "), "{audit}");
}

/// The guide's page about MCP: its first configuration, what the program shows, and a call to each server.
#[test]
fn servers_are_run_as_the_guide_says() {
    let Some(machine) = Machine::open("guide-run", "time") else { return };
    let config = machine.file("toolyard.toml");
    fs::write(&config, machine.here(block(&section("MCP"), "toml"))).unwrap();
    // It starts its own servers, while those of the run below start.
    let shown = machine.toolyard("work", &["tools", "--config", config.to_str().unwrap()]);
    let time = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let calls = json!({"calls": [
        {"call_id": "f", "name": "files__read_text_file", "arguments": {"path": "a.txt"}},
        {"call_id": "t", "name": "time__convert_time", "arguments": time},
    ]});
    let batch = machine.file("calls.json");
    fs::write(&batch, calls.to_string()).unwrap();
    let run = ["run", batch.to_str().unwrap(), "--approve", "auto", "--report", "none", "--config"];
    let output = printed(machine.toolyard("work", &[&run[..], &[config.to_str().unwrap()]].concat()));
    let results = serde_json::from_str::<Value>(&output).unwrap()["results"].clone();
    assert_eq!(results[0]["content"][0]["text"], "hello");
    assert!(results[1]["content"][0]["text"].as_str().unwrap().contains("21:00"), "{results}");
    let table = printed(shown);
    assert_eq!(row(&table, "files__read_file")[1..4], ["files", "read", "auto"]);
    assert!(row(&table, "files__read_file").join(" ").contains("its trusted server declares it read-only"));
    assert_eq!(row(&table, "time__convert_time")[1..4], ["time", "serial", "prompt"]);
    assert!(row(&table, "time__convert_time").join(" ").contains("its server is not trusted"));
}
