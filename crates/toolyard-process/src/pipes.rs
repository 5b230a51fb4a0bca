//! The pipes between this process and a program.

use crate::{Program, program::InputKind};
use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter},
};

#[cfg(unix)]
use std::os::fd::OwnedFd as Handle;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as Handle;

/// This process's end of a program's standard input.
#[cfg(unix)]
pub type Input = tokio::net::unix::pipe::Sender;

/// This process's end of a program's standard output or error.
#[cfg(unix)]
pub type Output = tokio::net::unix::pipe::Receiver;

/// This process's end of a program's standard input.
#[cfg(windows)]
pub type Input = tokio::process::ChildStdin;

/// This process's end of a program's standard output or error.
#[cfg(windows)]
pub type Output = tokio::process::ChildStdout;

/// What a program reads whose standard input is empty.
const NOTHING: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// This process's ends.
pub(crate) struct Ours {
    pub(crate) stdin: Option<Input>,
    #[cfg(unix)]
    pub(crate) socket: Option<tokio::net::UnixStream>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Option<Output>,
}

/// The program's ends. Copies of them that this process keeps would keep its own ends from ever reading an end.
pub(crate) struct Theirs {
    pub(crate) stdin: Handle,
    pub(crate) stdout: Handle,
    pub(crate) stderr: Handle,
}

/// The pipes that a program asks for.
pub(crate) fn open(program: &Program) -> io::Result<(Ours, Theirs)> {
    #[cfg(unix)]
    let mut our_socket = None;
    let (our_stdin, stdin) = match program.input {
        InputKind::Empty => (None, Handle::from(File::open(NOTHING)?)),
        InputKind::Pipe => input().map(|(ours, theirs)| (Some(ours), theirs))?,
        #[cfg(unix)]
        InputKind::Socket | InputKind::Descriptor3 => {
            let (ours, theirs) = socket()?;
            our_socket = Some(ours);
            (None, theirs)
        }
    };
    let (our_stdout, stdout) = output()?;
    let (our_stderr, stderr) = match program.errors_apart {
        true => output().map(|(ours, theirs)| (Some(ours), theirs))?,
        false => (None, stdout.try_clone()?),
    };
    let ours = Ours {
        stdin: our_stdin,
        #[cfg(unix)]
        socket: our_socket,
        stdout: our_stdout,
        stderr: our_stderr,
    };
    Ok((ours, Theirs { stdin, stdout, stderr }))
}

/// A socket, whose other end blocks whoever waits at it, as a program expects.
#[cfg(unix)]
fn socket() -> io::Result<(tokio::net::UnixStream, Handle)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs.into()))
}

fn input() -> io::Result<(Input, Handle)> {
    let (reader, writer) = io::pipe()?;
    Ok((our_input(writer)?, reader.into()))
}

fn output() -> io::Result<(Output, Handle)> {
    let (reader, writer) = io::pipe()?;
    Ok((our_output(reader)?, writer.into()))
}

#[cfg(unix)]
fn our_input(writer: PipeWriter) -> io::Result<Input> {
    Input::from_owned_fd(writer.into())
}

#[cfg(unix)]
fn our_output(reader: PipeReader) -> io::Result<Output> {
    Output::from_owned_fd(reader.into())
}

#[cfg(windows)]
fn our_input(writer: PipeWriter) -> io::Result<Input> {
    Input::from_std(Handle::from(writer).into())
}

#[cfg(windows)]
fn our_output(reader: PipeReader) -> io::Result<Output> {
    Output::from_std(Handle::from(reader).into())
}
