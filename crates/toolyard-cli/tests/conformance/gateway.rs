//! The gateway with the suite's tools behind it.

use crate::{
    judges::{Judges, ours},
    place::dir,
};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// A configuration with the server `server.mjs`, which runs on the SDK of this suite.
pub(crate) fn configured(judges: &Judges, suite: &str, name: &str) -> PathBuf {
    let dir = dir(name).canonicalize().unwrap();
    let (node, script, cwd) =
        (judges.node(), ours("server.mjs"), judges.suite(suite).canonicalize().unwrap());
    let text = format!(
        "[builtin]\nenable = []\n[mcp.suite]\ncommand = {node:?}\nargs = [{script:?}]\ncwd = {cwd:?}\ntrust = true\nprefix = \"\"\n"
    );
    let config = dir.join("toolyard.toml");
    fs::write(&config, text).unwrap();
    config
}

/// `toolyard mcp` over HTTP.
pub(crate) struct Gateway {
    program: Child,
    pub(crate) url: String,
}

impl Gateway {
    pub(crate) fn open(config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command.args(["mcp", "--approve", "auto", "--http", "127.0.0.1:0", "--config"]).arg(config);
        command.env_remove("TOOLYARD_LOG").env_remove("TOOLYARD_MCP_TOKEN");
        let mut program =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(program.stderr.take().unwrap()).lines();
        let serving = stderr.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, url) = line.split_once("serving ")?;
            Some(url.to_owned())
        });
        // Its later output is read too, so that it never blocks on writing.
        thread::spawn(move || stderr.for_each(drop));
        Self { url: serving.expect("it serves"), program }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let pid = self.program.id().to_string();
        let killed = Command::new("kill").args(["-INT", &pid]).status();
        let ended = self.program.wait();
        if !thread::panicking() {
            assert!(killed.is_ok_and(|status| status.success()));
            assert_eq!(ended.unwrap().code(), Some(130));
        }
    }
}
