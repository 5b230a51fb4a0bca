//! Starts the process that runs a command.

use super::{Containment, group, report::Report};
use cap_std::fs::Dir;
use std::{env, io, path::PathBuf, pin::Pin, process::Stdio};
use tokio::{net::unix::pipe, process::Command};
use tokio_util::sync::CancellationToken;

/// The shell, by its absolute path, so that PATH cannot choose another one.
pub(super) const SHELL: &str = "/bin/sh";

/// The arguments before the command. `--` keeps a command that begins with a dash from being read as an option.
pub(super) const SHELL_ARGUMENTS: [&str; 2] = ["-c", "--"];

/// A command to start.
pub(super) struct CommandSpec<'a> {
    pub(super) command: &'a str,
    /// The directory it starts in.
    pub(super) directory: Dir,
    /// The path of that directory, for systems that cannot start a process in an open directory.
    pub(super) path: PathBuf,
    /// The names of the variables it gets.
    pub(super) environment: &'a [String],
}

/// A started command.
pub(super) struct Launched {
    /// Its output, stdout and stderr.
    pub(super) output: pipe::Receiver,
    /// Waits for the command, and ends all its processes.
    pub(super) watch: Pin<Box<dyn Future<Output = Report> + Send>>,
}

/// Starts the command. The caller must drive the watch to its end; `stop` tells it to end all processes.
pub(super) fn launch(
    spec: &CommandSpec<'_>,
    containment: &Containment,
    stop: CancellationToken,
) -> io::Result<Launched> {
    let (reader, writer) = io::pipe()?;
    let output = pipe::Receiver::from_owned_fd(reader.into())?;
    let mut command = match containment {
        #[cfg(target_os = "linux")]
        Containment::Supervisor(supervisor) => super::supervised::command(supervisor, spec.command),
        Containment::Group => group::command(spec.command),
    };
    command.stdout(Stdio::from(writer.try_clone()?)).stderr(Stdio::from(writer));
    command.env_clear().envs(spec.environment.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.current_dir(working_directory(spec));
    let watch = match containment {
        #[cfg(target_os = "linux")]
        Containment::Supervisor(_) => super::supervised::start(command, stop)?,
        Containment::Group => group::start(command, stop)?,
    };
    Ok(Launched { output, watch })
}

/// The directory to start in. On Linux the process finds the open directory among its own descriptors, so that a
/// link that was swapped since cannot lead elsewhere.
fn working_directory(spec: &CommandSpec<'_>) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    match cfg!(target_os = "linux") {
        true => format!("/proc/self/fd/{}", spec.directory.as_raw_fd()).into(),
        false => spec.path.clone(),
    }
}

/// `sh -c` with this command.
pub(super) fn shell(command: &str) -> Command {
    let mut shell = Command::new(SHELL);
    shell.args(SHELL_ARGUMENTS).arg(command);
    shell
}
