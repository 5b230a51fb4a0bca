//! The program that runs a command.

use std::{env, os::fd::OwnedFd, path::PathBuf};
use toolyard_process::Program;

/// The shell, by its absolute path, so that PATH cannot choose another one.
const SHELL: &str = "/bin/sh";

/// The arguments before the command. `--` keeps a command that begins with a dash from being read as an option.
const SHELL_ARGUMENTS: [&str; 2] = ["-c", "--"];

/// The name of its helper in process lists.
const HELPER_NAME: &str = "toolyard-shell";

/// A command to start.
pub(super) struct Command<'a> {
    pub(super) text: &'a str,
    /// The directory it starts in.
    pub(super) directory: OwnedFd,
    /// The path of that directory, for systems that cannot start a process in an open directory.
    pub(super) path: PathBuf,
    /// The names of the variables it gets.
    pub(super) environment: &'a [String],
}

/// `sh -c` with this command, as data for a sandbox.
pub(super) fn portable(text: &str, environment: &[String]) -> toolyard_core::Command {
    let shell = SHELL_ARGUMENTS.iter().fold(toolyard_core::Command::new(SHELL), |shell, it| shell.arg(it));
    let variables = environment.iter().filter_map(|name| Some((name, env::var_os(name)?)));
    variables.fold(shell.arg(text), |shell, (name, value)| shell.variable(name, value))
}

impl Command<'_> {
    /// `sh -c` with this command.
    pub(super) fn program(self) -> Program {
        let variables = self.environment.iter().filter_map(|name| Some((name, env::var_os(name)?)));
        Program::new(SHELL)
            .args(SHELL_ARGUMENTS)
            .arg(self.text)
            .envs(variables)
            .open_directory(self.directory, self.path)
            .helper_name(HELPER_NAME)
    }
}
