//! The pipes between this process and a program.

use crate::Program;
use std::{fs::File, io, os::fd::OwnedFd};
use tokio::net::unix::pipe;

/// This process's ends.
pub(crate) struct Ours {
    pub(crate) stdin: Option<pipe::Sender>,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: Option<pipe::Receiver>,
}

/// The program's ends. Copies of them that this process keeps would keep its own ends from ever reading an end.
pub(crate) struct Theirs {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The pipes that a program asks for.
pub(crate) fn open(program: &Program) -> io::Result<(Ours, Theirs)> {
    let (our_stdin, stdin) = input(program.has_input)?;
    let (our_stdout, stdout) = output()?;
    let (our_stderr, stderr) = match program.errors_apart {
        true => output().map(|(ours, theirs)| (Some(ours), theirs))?,
        false => (None, stdout.try_clone()?),
    };
    let ours = Ours { stdin: our_stdin, stdout: our_stdout, stderr: our_stderr };
    Ok((ours, Theirs { stdin, stdout, stderr }))
}

fn input(is_piped: bool) -> io::Result<(Option<pipe::Sender>, OwnedFd)> {
    if !is_piped {
        return Ok((None, File::open("/dev/null")?.into()));
    }
    let (reader, writer) = io::pipe()?;
    Ok((Some(pipe::Sender::from_owned_fd(writer.into())?), reader.into()))
}

fn output() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}
