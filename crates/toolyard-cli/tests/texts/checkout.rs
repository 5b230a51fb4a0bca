//! A place like a checkout of the repository, in which examples may write, on a machine that has the programs they name.

use crate::{child::root, page::files, place::dir};
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Command,
};

/// A directory with `examples` and, in `bin`, the programs: the built `toolyard`, `cargo` as far as it runs that, and
/// `npx` and `uvx`, which start an MCP server whatever package they are asked for.
pub(crate) struct Checkout {
    pub(crate) dir: PathBuf,
}

const CARGO: &str = r#"case "$1 $2" in
"run --") shift 2; exec toolyard "$@" ;;
"test --workspace") [ $# = 2 ] ;; # which runs this test
*) echo "cargo $*: not known here" >&2; exit 64 ;;
esac"#;

impl Checkout {
    pub(crate) fn new(name: &str) -> Self {
        let checkout = Self { dir: dir(name).canonicalize().unwrap() };
        for path in files("examples", &["json", "jsonl", "sse", "toml", "md", "csv", "py"]) {
            let to = checkout.dir.join(&path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(root().join(path), to).unwrap();
        }
        for folder in ["bin", "work", "elsewhere"] {
            fs::create_dir(checkout.dir.join(folder)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_toolyard"), checkout.dir.join("bin/toolyard")).unwrap();
        let served = checkout.dir.join("bin/served.toml");
        fs::write(&served, "[builtin]\nenable = [\"read_file\"]\n").unwrap();
        let (work, served) = (checkout.dir.join("work"), served.display());
        let server = format!(
            "exec {} mcp --config {served} --workspace {}",
            env!("CARGO_BIN_EXE_toolyard"),
            work.display()
        );
        for (name, lines) in [("cargo", CARGO), ("npx", &server), ("uvx", &server)] {
            let program = checkout.dir.join("bin").join(name);
            fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        checkout
    }

    /// A text with this place's paths.
    pub(crate) fn here(&self, text: &str) -> String {
        text.replace("/path/to", self.dir.to_str().unwrap())
    }

    /// A command that runs here, with the variables that examples name.
    pub(crate) fn command(&self, program: &str) -> Command {
        let path = env::var("PATH").unwrap();
        let mut command = Command::new(program);
        command.current_dir(&self.dir).env("PATH", format!("{}:{path}", self.dir.join("bin").display()));
        command.env_remove("TOOLYARD_LOG").env("API_TOKEN", "a token of my own");
        command.env("TRACKER_TOKEN", "a token of the tracker");
        command.env("TOOLYARD_NOTIFY_URL", "http://hooks.example.com/questions");
        command.env("TOOLYARD_NOTIFY_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        command
    }
}
