//! A third-party client: the official Python SDK, driven by a script.

use crate::place::dir;
use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

/// A Python that has the SDK: the one that `TOOLYARD_MCP_PYTHON` names, or the system's.
fn python() -> Option<String> {
    let python = env::var("TOOLYARD_MCP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let asked = Command::new(&python).args(["-c", "import mcp; mcp.Client"]).stderr(Stdio::null()).status();
    if asked.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let is_ci = env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "{python} has no MCP SDK; .ci/run installs it");
    println!("left out: {python} has no MCP SDK; .ci/run installs it");
    None
}

/// Lists, asks by elicitation, makes 64 calls at once, cancels, takes progress, shares a key, is refused: with the
/// handshake alone, with the probe for later protocols first, and over HTTP with a token.
#[test]
fn the_official_python_client_drives_the_gateway() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/foreign.py");
    for mode in ["legacy", "auto", "http"] {
        let dir = dir(&format!("mcp-foreign-{mode}")).canonicalize().unwrap();
        let config = dir.join("toolyard.toml");
        let text = "[workspace]\nroot = \".\"\n[builtin]\nenable = [\"shell\", \"echo\", \"write_file\"]\n\
                    [shell]\nenv = [\"PATH\"]\n[confirmation]\nper_tool = { shell = \"auto\" }\n";
        fs::write(&config, text).unwrap();
        let mut command = Command::new(&python);
        command.arg(&script).args([
            env!("CARGO_BIN_EXE_toolyard").as_ref(),
            config.as_os_str(),
            dir.as_os_str(),
        ]);
        let output = command.arg(mode).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{mode}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
        assert!(stdout.contains("ok whole"), "{mode}: {stdout}");
    }
}
