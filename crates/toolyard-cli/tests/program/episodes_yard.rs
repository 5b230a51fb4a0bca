//! Episodes whose one tool is a program that can be held up from outside, for tests of what runs beside what.

use crate::{
    child::{Done, program, toolyard},
    named_pipe::NamedPipe,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

/// What the tool does, by what its arguments hold:
/// `take` waits for somebody who gives, and `give` for somebody who takes; `hold` says that it is here and waits for the
/// gate, while there is the file `held`. In the end it says what it was given.
const TOOL: &str = r#"
args=$(cat)
case $args in
*take*) read -r given <meeting ;;
*give*) echo something >meeting ;;
*hold*) if [ -e held ]; then echo here >told; read -r given <gate; fi ;;
esac
printf %s "$args"
"#;

/// A workspace with the tool `t`.
pub(crate) struct EpisodesYard {
    pub(crate) dir: PathBuf,
    config: String,
}

impl EpisodesYard {
    pub(crate) fn new(name: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        fs::create_dir(dir.join("work")).unwrap();
        fs::write(dir.join("tool.sh"), TOOL).unwrap();
        let file = dir.join("toolyard.toml");
        let config = "[workspace]\nroot = \"work\"\n[policy.rules]\nt = { sandbox = \"host\" }\n[program.t]\n\
                      description = \"A tool\"\ncommand = [\"sh\", \"./tool.sh\"]\nside_effects = \"read\"\n";
        fs::write(&file, config).unwrap();
        let yard = Self { config: file.to_str().unwrap().to_owned(), dir };
        for pipe in ["meeting", "gate"] {
            assert!(Command::new("mkfifo").arg(yard.work(pipe)).status().unwrap().success());
        }
        yard
    }

    /// A file of the workspace.
    pub(crate) fn work(&self, file: &str) -> PathBuf {
        self.dir.join("work").join(file)
    }

    /// A file beside the workspace, as an argument.
    pub(crate) fn beside(&self, file: &str) -> String {
        self.dir.join(file).to_str().unwrap().to_owned()
    }

    /// Lets calls that hold wait from now on; the pipe tells of each.
    pub(crate) fn hold(&self) -> NamedPipe {
        fs::write(self.work("held"), "").unwrap();
        let _ = fs::remove_file(self.work("told"));
        NamedPipe::make(&self.work("told"))
    }

    /// Holds no further call up.
    pub(crate) fn release(&self) {
        fs::remove_file(self.work("held")).unwrap();
    }

    /// Opens the gate for one call that waits for it.
    pub(crate) fn open_gate(&self) {
        fs::write(self.work("gate"), "\n").unwrap();
    }

    /// The arguments of a run over this file of episodes.
    pub(crate) fn args<'a>(&'a self, input: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["run", input, "--from", "episodes", "--config", &self.config], more].concat()
    }

    pub(crate) fn run(&self, input: &str, more: &[&str]) -> Done {
        toolyard(&self.args(input, more), "")
    }

    pub(crate) fn start(&self, input: &str, more: &[&str]) -> Child {
        program(&self.args(input, more)).spawn().unwrap()
    }

    /// Writes episodes into a file beside the workspace, each with its turns of calls of `t`.
    pub(crate) fn write(&self, file: &str, episodes: &[(&str, &[&[&str]])]) -> String {
        let call = |(at, does): (usize, &&str)| json!({"call_id": format!("c{at}"), "name": "t", "arguments": {"does": does}});
        let turn = |calls: &&[&str]| calls.iter().enumerate().map(call).collect::<Value>();
        let line = |(id, turns): &(&str, &[&[&str]])| {
            format!("{}\n", json!({"id": id, "turns": turns.iter().map(turn).collect::<Value>()}))
        };
        let path = self.beside(file);
        fs::write(&path, episodes.iter().map(line).collect::<String>()).unwrap();
        path
    }
}

/// The id and the turn of each line of results.
pub(crate) fn places(results: &str) -> Vec<String> {
    let place = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", line["id"].as_str().unwrap(), line["turn"])
    };
    results.lines().map(place).collect()
}

/// The text of a file.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
