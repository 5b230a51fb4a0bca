//! A place with agents.

use crate::{
    child::{Done, fed, program},
    missing::skip,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

/// Whether nothing can be confined here: then these tests are skipped.
pub(crate) fn is_missing() -> bool {
    let works = Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).output();
    let is_missing = !works.is_ok_and(|done| done.status.success());
    if is_missing {
        skip("this machine lets its user make no namespaces, or has no unshare");
    }
    is_missing
}

/// A directory with a configuration, and a directory `data` beside it.
pub(crate) struct Yard {
    pub(crate) dir: PathBuf,
}

impl Yard {
    /// `config` is what the configuration says; `AGENT` in it is the command of the test agent, `DIR` the directory.
    pub(crate) fn new(name: &str, config: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        fs::create_dir(dir.join("data")).unwrap();
        fs::write(dir.join("data/a.txt"), "old").unwrap();
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/agent.sh"), dir.join("agent.sh"))
            .unwrap();
        let config =
            config.replace("AGENT", "[\"/bin/bash\", \"agent.sh\"]").replace("DIR", dir.to_str().unwrap());
        fs::write(dir.join("agents.toml"), config).unwrap();
        Self { dir }
    }

    /// One agent that behaves so, with these tools, and may do what `more` says.
    pub(crate) fn of(name: &str, behavior: &str, tools: &[&str], more: &str) -> Self {
        let config = format!(
            "[agents.a]\ncommand = AGENT\ntools = {tools:?}\nenv = {{ CC_RUNNER_BEHAVIOR = {} }}\n{more}\n",
            json!(behavior)
        );
        Self::new(name, &config)
    }

    /// One agent that runs this script, in which `say` writes a line and `hear` reads one into `$heard`.
    pub(crate) fn scripted(name: &str, script: &str, tools: &[&str], more: &str) -> Self {
        let script =
            format!("say() {{ printf '%s\\n' \"$1\"; }}; hear() {{ IFS= read -r heard; }}\n{script}");
        let config = format!(
            "[agents.a]\ncommand = [\"/bin/bash\", \"-c\", {}]\ntools = {tools:?}\nenv = {{ PLACE = \"DIR\" }}\n{more}\n",
            json!(script)
        );
        Self::new(name, &config)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = program(&[
            "supervise",
            "agents.toml",
            "--report",
            "json",
            "--audit",
            "audit.jsonl",
            "--events",
            "events.jsonl",
        ]);
        command.current_dir(&self.dir);
        command
    }

    pub(crate) fn run(&self) -> Done {
        fed(self.command(), "")
    }

    /// What is reported of its agents, the first to end first.
    pub(crate) fn reports(&self) -> Vec<Value> {
        let done = self.run();
        done.json()["agents"].as_array().unwrap().clone()
    }

    /// What is reported of the only agent.
    pub(crate) fn report(&self) -> Value {
        let reports = self.reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports[0].clone()
    }

    /// The audit: each line's event, error, tool and call, with its arguments.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.dir.join("audit.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs its only agent, whose result is the answer to a call.
    pub(crate) fn answer(&self) -> Value {
        let report = self.report();
        assert_eq!(report["end"], "ended", "{report}");
        report["result"].clone()
    }
}

/// Waits until this file is there, as long as the supervisor runs.
pub(crate) fn until_there(file: &Path, supervisor: &mut Child) {
    while !file.exists() {
        assert_eq!(supervisor.try_wait().unwrap(), None, "the supervisor has ended");
        std::thread::yield_now();
    }
}

/// The line of a call.
pub(crate) fn call(tool: &str, args: &Value) -> String {
    format!("tool_call={}", json!({"op": "tool_call", "tool_call_id": "c", "tool": tool, "args": args}))
}
