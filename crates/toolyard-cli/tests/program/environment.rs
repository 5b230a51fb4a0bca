//! The program's environment, which may hold secrets: neither commands nor servers read it, and its secrets show nowhere.

use crate::{
    child::{Done, fed, program},
    place::dir,
};
use serde_json::json;
use std::fs;

/// I15: the gateway's token, and the variables that a configuration passes to a server, are registered secrets.
#[test]
fn the_token_and_the_variables_of_servers_are_redacted() {
    let dir = dir("environment-secrets");
    let file = dir.join("toolyard.toml");
    let server = "[mcp.s]\ncommand = \"no-such-server\"\nrequired = false\nenv = { KEY = \"$SERVER_KEY\" }\n";
    fs::write(&file, server).unwrap();
    let text = "one-secret-token and another-server-key";
    let call = json!({"calls": [{"call_id": "a", "name": "echo", "arguments": {"text": text}}]});
    let mut command = program(&["run", "--report", "none", "--config", file.to_str().unwrap()]);
    command.env("TOOLYARD_MCP_TOKEN", "one-secret-token").env("SERVER_KEY", "another-server-key");
    let Done { code, stdout, stderr } = fed(command, &call.to_string());
    assert_eq!(code, Some(0), "{stderr}");
    for secret in ["one-secret-token", "another-server-key"] {
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "{stdout} {stderr}");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::{
        os::unix::{fs::PermissionsExt, process::CommandExt},
        path::Path,
        process::{Command, Stdio},
    };

    /// A user with no rights. Root may read everything, so a test that runs as root becomes this one.
    const NOBODY: u32 = 65534;

    /// The program in this directory, as a user that is not root, with a secret in its environment.
    fn unprivileged(dir: &Path, args: &[&str]) -> Command {
        let built = Path::new(env!("CARGO_BIN_EXE_toolyard"));
        let mut command = if rustix::process::geteuid().is_root() {
            // The build directory may be closed to others.
            let copy = dir.join("toolyard");
            fs::copy(built, &copy).unwrap();
            let mut command = Command::new(copy);
            command.uid(NOBODY).gid(NOBODY);
            command
        } else {
            Command::new(built)
        };
        command.args(args).current_dir(dir).env("SECRET_OF_THE_PROGRAM", "swordfish");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Processes of the same user could read each other's environment through /proc; this program's is closed to them.
    #[test]
    fn commands_and_servers_cannot_read_the_environment_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let spy = "cat /proc/$PPID/environ > seen 2> why";
        let config = format!(
            "[builtin]\nenable = [\"shell\"]\n[shell]\nenv = [\"PATH\"]\n\
             [mcp.spy]\ncommand = \"sh\"\nargs = [\"-c\", \"{spy}\"]\ncwd = \".\"\nrequired = false\n"
        );
        let file = dir.path().join("toolyard.toml");
        fs::write(&file, config).unwrap();
        // The parent of a command is its helper, whose parent is the program.
        let command =
            "for pid in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do cat /proc/$pid/environ; done; true";
        let call = json!({"calls": [{"call_id": "a", "name": "shell", "arguments": {"command": command}}]});
        let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
        let done = fed(unprivileged(dir.path(), &args), &call.to_string());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(done.stdout.matches("Permission denied").count(), 2, "{done:?}");
        let (seen, why) = (dir.path().join("seen"), dir.path().join("why"));
        assert_eq!(fs::read_to_string(seen).unwrap(), "");
        assert!(fs::read_to_string(why).unwrap().contains("Permission denied"));
        assert!(!done.stdout.contains("swordfish"), "{done:?}");
    }
}
