//! Servers that are downloaded once and then confined. They are packed here, so that nothing is downloaded really; one of
//! the registry is, where one is reached.

use crate::{confined::is_missing, place::dir};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Whether a program is missing. Where tests must run, it has to be there.
fn lacks(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        return false;
    }
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "there is no {program}");
    eprintln!("skipped: there is no {program}");
    true
}

/// A configuration with one server, and a cache of its own.
struct Place {
    dir: PathBuf,
    config: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        for inner in ["work", "package"] {
            fs::create_dir(dir.join(inner)).unwrap();
        }
        let config = dir.join("toolyard.toml");
        Self { dir, config }
    }

    fn configure(&self, command: &str, args: &[&str], more: &str) {
        let work = self.dir.join("work");
        let text = format!(
            "[workspace]\nroot = {work:?}\n[builtin]\nenable = []\n[mcp.it]\ncommand = {command:?}\nargs = {args:?}\n\
             cwd = {:?}\ntrust = true\nsandbox = \"process\"\nfiles = [{:?}]\n{more}\n",
            self.dir, self.dir
        );
        fs::write(&self.config, text).unwrap();
    }

    /// Runs the program. What is packed here needs no registry, and must not ask one.
    fn toolyard(&self, args: &[&str]) -> Output {
        self.asking("true", args)
    }

    /// Runs the program, which may ask a registry of npm packages unless it is offline.
    fn asking(&self, is_offline: &str, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command.args(args).arg("--config").arg(&self.config).current_dir(self.dir.join("work"));
        command.env("XDG_CACHE_HOME", self.dir.join("cache")).env_remove("TOOLYARD_LOG");
        command.envs([("npm_config_offline", is_offline), ("PIP_NO_INDEX", "1"), ("UV_OFFLINE", "1")]);
        command.output().unwrap()
    }

    fn fetch(&self, more: &[&str]) -> Value {
        let done = self.toolyard(&[&["mcp", "fetch", "it", "--json"], more].concat());
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// What the server's tool says.
    fn look(&self) -> Value {
        let batch = self.dir.join("batch.json");
        fs::write(&batch, r#"{"calls":[{"call_id":"a","name":"it__look","arguments":{}}]}"#).unwrap();
        let done = self.toolyard(&["run", batch.to_str().unwrap(), "--report", "none"]);
        let results: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        let text =
            results["results"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{results}"));
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// The server is not there at first; it is fetched once, and then runs confined.
    fn check(&self, version: (&str, &str), args: &Value) {
        let done = self.toolyard(&["check"]);
        let why = said(&done);
        assert_eq!(done.status.code(), Some(2));
        assert!(why.contains("run 'toolyard mcp fetch it' once before"), "{why}");

        let fetched = self.fetch(&[]);
        assert_eq!(fetched["was_there"], false);
        assert_eq!(fetched["versions"][version.0], version.1, "{fetched}");
        assert_eq!(self.fetch(&[])["directory"], fetched["directory"]);
        assert_eq!(self.look(), json!([args, "EROFS"]));
        let checked = self.toolyard(&["check"]);
        let checked = String::from_utf8(checked.stdout).unwrap();
        assert!(checked.contains("1 tools, in process"), "{checked}");
    }
}

fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).unwrap()
}

/// Packs the server for npm, with a script that would run when it is installed.
fn pack_for_npm(place: &Place) -> String {
    let package = place.dir.join("package");
    let ran = place.dir.join("ran");
    let about = json!({
        "name": "@test/server",
        "version": "1.2.3",
        "bin": {"fetched-server": "server.js"},
        "scripts": {"preinstall": format!("touch {ran:?}"), "install": format!("touch {ran:?}")},
    });
    fs::write(package.join("package.json"), about.to_string()).unwrap();
    fs::write(package.join("server.js"), include_str!("fetched/server.js")).unwrap();
    let packed = Command::new("npm").args(["pack", "--silent"]).current_dir(&package).output().unwrap();
    assert!(packed.status.success(), "{packed:?}");
    format!("./package/{}", String::from_utf8(packed.stdout).unwrap().trim())
}

/// Packs the server as a wheel.
fn pack_for_python(place: &Place) -> String {
    let (package, wheel) = (place.dir.join("package"), "fetched_server-1.2.3-py3-none-any.whl");
    let about = "fetched_server-1.2.3.dist-info";
    fs::create_dir(package.join(about)).unwrap();
    let file = |name: &str, text: &str| fs::write(package.join(name), text).unwrap();
    file("fetched_server.py", include_str!("fetched/server.py"));
    file(&format!("{about}/METADATA"), "Metadata-Version: 2.1\nName: fetched-server\nVersion: 1.2.3\n");
    file(&format!("{about}/WHEEL"), "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    file(&format!("{about}/entry_points.txt"), "[console_scripts]\nfetched-server = fetched_server:main\n");
    file(
        &format!("{about}/RECORD"),
        &format!("fetched_server.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n"),
    );
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c", wheel, "fetched_server.py", about]).current_dir(&package);
    assert!(zip.status().unwrap().success());
    format!("./package/{wheel}")
}

/// SB-5: a server that npx would download is fetched once, and nothing of it runs then; it is confined and cannot change
/// itself, also if the directory around the cache may be read.
#[test]
fn a_server_of_npm_is_fetched_once_and_then_confined() {
    if lacks("npm") || is_missing() {
        return;
    }
    let place = Place::new("mcp-fetch-npm");
    let package = pack_for_npm(&place);
    place.configure("npx", &["-y", &package, "--flag", "x"], "");
    place.check(("@test/server", "1.2.3"), &json!(["--flag", "x"]));
    let (before, again) = (place.fetch(&[]), place.fetch(&["--again"]));
    assert_ne!(again["directory"], before["directory"]);
    assert!(!Path::new(before["directory"].as_str().unwrap()).exists());
    assert_eq!(place.look(), json!([["--flag", "x"], "EROFS"]));
    assert!(!place.dir.join("ran").exists(), "an install script has run");
}

/// SB-5: a server of the registry, where one is reached: it is fetched as its command names it, and reads what it may.
#[test]
fn a_server_of_the_registry_is_fetched_and_confined() {
    const PACKAGE: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
    if lacks("npm") || is_missing() {
        return;
    }
    let asked = Command::new("npm").args(["view", "--fetch-retries=0", PACKAGE, "version"]).output().unwrap();
    if !asked.status.success() {
        eprintln!("skipped: no registry of npm packages is reached");
        return;
    }
    let place = Place::new("mcp-fetch-registry");
    let file = place.dir.join("a.txt");
    fs::write(&file, "hello").unwrap();
    place.configure("npx", &["-y", PACKAGE, "/"], "");
    let fetched = place.asking("false", &["mcp", "fetch", "it", "--json"]);
    assert!(fetched.status.success(), "{fetched:?}");
    let calls = [file.to_str().unwrap(), "/etc/shadow"]
        .map(|path| json!({"call_id": path, "name": "it__read_text_file", "arguments": {"path": path}}));
    let batch = place.dir.join("batch.json");
    fs::write(&batch, json!({"calls": calls}).to_string()).unwrap();
    let done = place.toolyard(&["run", batch.to_str().unwrap(), "--report", "none"]);
    let results: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    assert_eq!(results["results"][0]["content"][0]["text"], "hello", "{results}");
    assert!(results["results"][1].to_string().contains("ENOENT"), "{results}");
}

/// SB-5: the same for what uvx would download.
#[test]
fn a_server_of_python_is_fetched_once_and_then_confined() {
    if lacks("python3") || is_missing() {
        return;
    }
    let place = Place::new("mcp-fetch-python");
    let wheel = pack_for_python(&place);
    place.configure("uvx", &["--from", &wheel, "fetched-server", "x"], "");
    place.check(("fetched_server", "1.2.3"), &json!(["x"]));
}

/// SB-5: what cannot be fetched says why, in one line and by its exit code, and leaves nothing.
#[test]
fn what_cannot_be_fetched_says_why() {
    if lacks("npm") {
        return;
    }
    let place = Place::new("mcp-fetch-errors");
    let package = pack_for_npm(&place);
    let fetch = |name: &str| {
        let done = place.toolyard(&["mcp", "fetch", name]);
        assert!(done.stdout.is_empty());
        let why = said(&done);
        assert_eq!(why.lines().count(), 1, "{why}");
        (done.status.code(), why)
    };
    for (command, args, name, code, expect) in [
        ("npx", &["a"][..], "other", 2, "the configuration has no MCP server 'other'; it has it"),
        ("node", &["a.js"], "it", 2, "[mcp.it] has the command 'node', which is none that downloads"),
        (
            "npx",
            &["--registry", "x", "a"],
            "it",
            2,
            "[mcp.it] npx: the argument '--registry' is not understood",
        ),
        ("npx", &["-p", &package, "other"], "it", 1, "no program 'other'; they have fetched-server"),
        ("npx", &["no-such-package-here"], "it", 1, "'npm install' failed (exit status: 1): "),
    ] {
        place.configure(command, args, "");
        let (ended, why) = fetch(name);
        assert_eq!(ended, Some(code), "{why}");
        assert!(why.contains(expect), "{why}");
    }
    let left = fs::read_dir(place.dir.join("cache/toolyard/mcp")).unwrap();
    let left: usize = left.map(|key| fs::read_dir(key.unwrap().path()).unwrap().count()).sum();
    assert_eq!(left, 0);
    fs::write(&place.config, "[mcp.it]\ncommand = \"npx\"\nargs = [\"a\"]\n").unwrap();
    let (ended, why) = fetch("it");
    assert_eq!(ended, Some(2));
    assert!(why.contains("[mcp.it] is not confined and downloads by itself"), "{why}");
}

/// SB-11: what is fetched is run as it is found, so it does not lie where tools write.
#[test]
fn a_cache_that_tools_may_write_is_refused() {
    let place = Place::new("mcp-fetch-writable");
    place.configure("npx", &["a"], "");
    let around = fs::read_to_string(&place.config).unwrap().replace("/work\"", "\"");
    fs::write(&place.config, around).unwrap();
    let done = place.toolyard(&["mcp", "fetch", "it"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("set XDG_CACHE_HOME"), "{done:?}");
}
