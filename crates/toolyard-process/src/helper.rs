//! The helper: the process between your program and one that it starts, which leaves no process of that one behind.
//!
//! It does not rely on a parent-death signal, because that is sent when the *thread* that started the process ends, and a
//! runtime's threads do end. The socket to the parent closes only when the parent process has died.

mod control;
mod supervision;

use crate::{confine, descendants::descendants, launch::Received, message::Message};
use rustix::process::{getpid, set_child_subreaper, setsid};
use std::{
    env,
    ffi::OsStr,
    fs,
    future::pending,
    io::{self, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicBool, Ordering},
};
pub(crate) use supervision::{Supervision, program, start, used};

/// The running program, even if the file at its path has been replaced since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// Whether this program called `help_if_asked` at its start.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// A program that can run as a helper, because its `main` begins with [`help_if_asked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    program: PathBuf,
}

impl Helper {
    /// The argument of a program that is started as a helper.
    pub(crate) const ARGUMENT: &str = "--toolyard-help-process";

    /// The running program, started a second time as a helper.
    ///
    /// # Errors
    /// [`NotClaimed`] when its `main` did not begin with [`help_if_asked`]: a second start would then repeat the program's
    /// own work instead of helping another program.
    pub fn this_program() -> Result<Self, NotClaimed> {
        match CLAIMED.load(Ordering::Relaxed) {
            true => Ok(Self { program: THIS_PROGRAM.into() }),
            false => Err(NotClaimed),
        }
    }

    /// Another program whose `main` begins with [`help_if_asked`], by its absolute path. For libraries that do not control
    /// the `main` of their program.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.program
    }
}

/// The error that the program did not call [`help_if_asked`] at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this program cannot help others: its main must begin with toolyard_process::help_if_asked()")]
pub struct NotClaimed;

/// Runs the program as a helper if it was started as one, and then does not return. Otherwise does nothing.
///
/// A program that starts others under [`Helper::this_program`] must call this at the start of `main`, before it starts any
/// thread.
///
/// # Examples
/// ```no_run
/// use toolyard_process::{Containment, Helper, Program, help_if_asked};
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     help_if_asked();
///     // Here begins the program itself.
///     let containment = Containment::Helper(Helper::this_program()?);
///     let runtime = tokio::runtime::Runtime::new()?;
///     runtime.block_on(async {
///         let mut started = Program::new("/usr/bin/make").start(&containment)?;
///         println!("{:?}", started.processes.ended().await);
///         Ok(())
///     })
/// }
/// ```
pub fn help_if_asked() {
    let asked = env::args_os().nth(1);
    let done = match asked.as_deref() {
        Some(asked) if asked == OsStr::new(Helper::ARGUMENT) => help(),
        Some(asked) if asked == OsStr::new(confine::INIT) => next(confine::init),
        Some(asked) if asked == OsStr::new(confine::ENTER) => next(confine::enter),
        _ => return CLAIMED.store(true, Ordering::Relaxed),
    };
    process::exit(i32::from(done.is_err()))
}

/// Starts what it is told to over the socket that is its standard input, and ends all processes of that.
fn help() -> io::Result<()> {
    close_inherited()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut messages = socket.try_clone()?;
    help_over(socket).inspect_err(|error| {
        // If the socket itself failed, the parent cannot be told.
        let _ = messages.write_all(&Message::Refused(error.to_string()).line());
    })
}

/// Runs as the process after a helper, which hands on to it over its standard input.
fn next(run: impl FnOnce(&UnixStream) -> io::Result<()>) -> io::Result<()> {
    close_inherited()?;
    run(&UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn help_over(socket: UnixStream) -> io::Result<()> {
    // From here on there is no terminal, and no terminal's signals reach this process group.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    descendants(getpid())?; // a helper that cannot see its processes must not start any
    let mut received = Received::receive(&socket)?;
    // Closed by the end of this process, which is that of all that it has started.
    let _kept = received.take_kept();
    match received.confined() {
        None => Supervision::run(program(received.into_command()?), pending(), socket),
        Some(_) => confine::start(received, socket),
    }
}

/// Closes descriptors that were inherited by accident: a program gets what it is given and no more.
fn close_inherited() -> io::Result<()> {
    let open = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?.flatten().filter_map(open).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The descriptor that listed them is closed already, and fails here.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_did_not_ask_is_no_helper() {
        assert_eq!(Helper::this_program(), Err(NotClaimed));
        help_if_asked();
        assert_eq!(Helper::this_program().unwrap().path(), Path::new("/proc/self/exe"));
    }
}
