//! The place where `.ci/mcp-suites` has installed the suite and the inspector.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The directory that contains them. Without it a test is skipped, except on CI, where it fails.
pub(crate) fn place() -> Option<Judges> {
    let dir =
        env::var_os("TOOLYARD_MCP_SUITES").map(PathBuf::from).filter(|dir| dir.join("versions").exists());
    if dir.is_none() {
        let is_ci = env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "TOOLYARD_MCP_SUITES has no conformance suite; .ci/run installs it");
        println!("left out: TOOLYARD_MCP_SUITES has no conformance suite; .ci/run installs it");
    }
    dir.map(Judges)
}

/// A file of these tests.
pub(crate) fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

/// The directory of the suites.
pub(crate) struct Judges(PathBuf);

impl Judges {
    /// A Node that is new enough for the suites.
    pub(crate) fn node(&self) -> PathBuf {
        self.0.join("node/bin/node")
    }

    /// The directory of this suite: the release or the preview.
    pub(crate) fn suite(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Whether the suite passes what it judges, and its output. Its notes go to `notes`.
    pub(crate) fn judge<S: AsRef<OsStr>>(&self, suite: &str, args: &[S], notes: &Path) -> (bool, String) {
        let mut command = Command::new(self.node());
        command.current_dir(self.suite(suite)).env_remove("TOOLYARD_LOG");
        command.arg("node_modules/@modelcontextprotocol/conformance/dist/index.js").args(args);
        let done = command.arg("--output-dir").arg(notes).stdin(Stdio::null()).output().unwrap();
        let output =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        (done.status.success(), output)
    }

    /// The inspector's command line, with its own home directory.
    pub(crate) fn inspector(&self, home: &Path) -> Command {
        let mut command = Command::new(self.node());
        let script = "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        command.arg(self.0.join(script)).arg("--cli").current_dir(home);
        command.env("HOME", home).env("MCP_INSPECTOR_SECRET_STORE", "memory").stdin(Stdio::null());
        command
    }
}
