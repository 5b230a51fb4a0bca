//! The program of a call.

use crate::{files::path, port::Sender};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, process::ExitStatusExt as _},
    },
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};
use toolyard_vm::protocol::{Bytes, FromGuest, Run};

/// How many bytes of an output are read at a time.
const PIECE_BYTES: usize = 32 << 10;

/// Runs it, and ends everything that it leaves: what holds its outputs would keep those from ending.
pub(crate) fn run(run: &Run, input: Vec<u8>, to: &Sender) -> io::Result<ExitStatus> {
    fs::create_dir_all(path(&run.directory))?;
    let Running { mut child, output, errors } = start(run)?;
    to.send(&FromGuest::Started)?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        scope.spawn(|| {
            // A program that does not read its input is as good as any.
            let _ = stdin.map(|mut pipe| pipe.write_all(&input));
        });
        scope.spawn(|| pass(output, to, FromGuest::Output));
        scope.spawn(|| pass(errors, to, FromGuest::Errors));
        let status = child.wait();
        // From the first process: all but itself.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        status
    })
}

/// How it ended.
pub(crate) fn end(status: ExitStatus) -> FromGuest {
    match status.signal() {
        Some(signal) => FromGuest::Killed(signal),
        None => FromGuest::Exited(status.code().unwrap_or(-1)),
    }
}

/// A program that was started, with what it prints.
struct Running {
    child: Child,
    output: Option<OwnedFd>,
    /// None of its own if both outputs are one.
    errors: Option<OwnedFd>,
}

fn start(run: &Run) -> io::Result<Running> {
    let mut command = command(run);
    if run.is_merged {
        let (output, both) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(both.try_clone()?).stderr(both);
        return Ok(Running { child: command.spawn()?, output: Some(output.into()), errors: None });
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (output, errors) = (child.stdout.take().map(Into::into), child.stderr.take().map(Into::into));
    Ok(Running { child, output, errors })
}

fn command(run: &Run) -> Command {
    let mut command = Command::new(path(&run.program));
    command.args(run.arguments.iter().map(text)).env_clear();
    command.envs(run.variables.iter().map(|(name, value)| (text(name), text(value))));
    command.current_dir(path(&run.directory));
    command
}

fn text(bytes: &Bytes) -> &OsStr {
    OsStr::from_bytes(&bytes.0)
}

fn pass(pipe: Option<OwnedFd>, to: &Sender, message: impl Fn(Bytes) -> FromGuest) {
    let (Some(mut pipe), mut piece) = (pipe.map(File::from), vec![0; PIECE_BYTES]) else { return };
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return,
            Ok(length) if to.send(&message(Bytes::from(&piece[..length]))).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}
