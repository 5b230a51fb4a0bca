//! The launch document: what a helper is told to start, and the descriptors that go with it.
//!
//! ```text
//!   length (4 bytes, big endian)   JSON, without a line end   then only orders
//!   └ with it, as SCM_RIGHTS: what the helper keeps open itself, if there is any, alone, and then
//!     standard input, output, error, and the directory if there is one,
//!     or what a confined program is granted, and where its door goes if it has one;
//!     what a helper hands on to another has its own after those
//! ```
//!
//! It goes over the socket and not into the helper's arguments and environment, where every process of the user could
//! read it, and which other programs' layers would have to be told from. A helper refuses fields that it does not know,
//! because they may confine what it starts.

mod bytes;
pub(crate) mod rights;

use crate::{
    Program,
    confine::{Grant, Group, Layout},
    descriptor3, open_files,
    pipes::Theirs,
    program::InputKind,
    search,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

/// The longest launch document in bytes: arguments and environment in JSON. Linux itself allows 2 MiB of them by default.
pub const LAUNCH_BYTES_MAX: usize = 4 << 20;

/// The length of the document, in front of it.
type Length = u32;

/// What to start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Launch {
    /// How many files the helper keeps open until it ends: the first that come. The program does not have them.
    #[serde(default, skip_serializing_if = "is_zero")]
    kept: usize,
    program: Bytes,
    args: Vec<Bytes>,
    env: Vec<(Bytes, Bytes)>,
    /// Whether a directory is among the descriptors; otherwise it is that of the helper.
    has_directory: bool,
    /// Whether its standard input becomes its descriptor 3.
    is_on_descriptor_3: bool,
    /// The most open files that it has without asking for more, unless that is what this process has.
    open_files: Option<u64>,
    /// What the program is confined to, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confined: Option<Confined>,
}

/// What a program is confined to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confined {
    pub(crate) layout: Layout,
    /// The directory it starts in, inside; that of its temporary files without one.
    directory: Option<Bytes>,
}

impl Confined {
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(|directory| Path::new(directory.as_os_str()))
    }
}

/// A launch with its descriptors, as a helper receives it.
#[derive(Debug)]
pub(crate) struct Received {
    launch: Launch,
    kept: Vec<OwnedFd>,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    directory: Option<OwnedFd>,
    handles: Vec<OwnedFd>,
}

impl Launch {
    pub(crate) fn of(program: &Program, has_directory: bool, kept: usize) -> Self {
        let bytes = |text: &OsString| Bytes::of(text);
        Self {
            kept,
            program: Bytes::of(program.path.as_os_str()),
            args: program.args.iter().map(bytes).collect(),
            env: program.env.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
            has_directory,
            is_on_descriptor_3: program.input == InputKind::Descriptor3,
            open_files: open_files::before(),
            confined: program.confinement.as_ref().map(|confinement| Confined {
                layout: confinement.layout.clone(),
                directory: program.directory.inside().map(|directory| Bytes::of(directory.as_os_str())),
            }),
        }
    }

    /// The document with its length.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when it is longer than [`LAUNCH_BYTES_MAX`].
    pub(crate) fn document(&self) -> io::Result<Vec<u8>> {
        let mut document = vec![0; size_of::<Length>()];
        serde_json::to_writer(&mut document, self)?;
        let length = document.len() - size_of::<Length>();
        let fits = Length::try_from(length).ok().filter(|_| length <= LAUNCH_BYTES_MAX);
        let header = fits.ok_or_else(|| too_long(length))?.to_be_bytes();
        document[..header.len()].copy_from_slice(&header);
        Ok(document)
    }
}

/// Sends the descriptors with as much of the document as the socket takes now: with its length those that the helper keeps,
/// if there are any, because one message takes not all. Returns the rest.
pub(crate) fn send(
    socket: &UnixStream,
    mut document: Vec<u8>,
    kept: &[Arc<File>],
    theirs: &Theirs,
    others: &[OwnedFd],
) -> io::Result<Vec<u8>> {
    if !kept.is_empty() {
        let kept: Vec<_> = kept.iter().map(|file| file.as_fd()).collect();
        let sent = rights::send(socket, &document[..size_of::<Length>()], &kept)?;
        document.drain(..sent);
    }
    let descriptors = [&theirs.stdin, &theirs.stdout, &theirs.stderr].into_iter().chain(others);
    let descriptors: Vec<_> = descriptors.map(AsFd::as_fd).collect();
    let sent = rights::send(socket, &document, &descriptors)?;
    document.drain(..sent);
    Ok(document)
}

impl Received {
    /// Receives a launch from a socket that blocks, and nothing that follows it.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when the sender has died.
    pub(crate) fn receive(socket: &UnixStream) -> io::Result<Self> {
        let (launch, descriptors) = receive(socket)?;
        let mut descriptors = descriptors.into_iter();
        let kept = descriptors.by_ref().take(launch.kept).collect();
        let mut next = || descriptors.next().ok_or_else(missing);
        let (stdin, stdout, stderr) = (next()?, next()?, next()?);
        let directory = launch.has_directory.then(next).transpose()?;
        Ok(Self { launch, kept, stdin, stdout, stderr, directory, handles: descriptors.collect() })
    }

    /// Takes out what this process keeps open until it ends, and hands on to nobody.
    pub(crate) fn take_kept(&mut self) -> Vec<OwnedFd> {
        self.launch.kept = 0;
        std::mem::take(&mut self.kept)
    }

    /// What the program is confined to, if it is.
    pub(crate) fn confined(&self) -> Option<&Confined> {
        self.launch.confined.as_ref()
    }

    /// The group that it gets, if it is confined to one.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.confined()?.layout.group.as_ref()
    }

    /// What it is granted, in the order of the layout.
    pub(crate) fn handles(&self) -> &[OwnedFd] {
        &self.handles
    }

    /// Takes out where the program's door goes, if it has one: the last of what came.
    pub(crate) fn take_door(&mut self) -> io::Result<Option<OwnedFd>> {
        let has_door = self.confined().is_some_and(|confined| confined.layout.has_door);
        has_door.then(|| self.take_last()).transpose()
    }

    /// Forgets what it is granted, for whoever has mounted that.
    pub(crate) fn without_handles(mut self) -> Self {
        self.handles.clear();
        self
    }

    /// Grants a confined program a directory for its temporary files, to which these variables lead, whatever they had
    /// said, and where it starts unless it starts elsewhere.
    pub(crate) fn give_home(&mut self, handle: OwnedFd, at: &Path, variables: &[&str]) {
        let Launch { confined: Some(confined), env, .. } = &mut self.launch else { return };
        confined.layout.grants.push(Grant { at: at.to_owned(), is_writable: true });
        self.handles.push(handle);
        confined.directory.get_or_insert_with(|| Bytes::of(at.as_os_str()));
        env.retain(|(name, _)| !variables.iter().any(|variable| name.as_os_str() == *variable));
        env.extend(variables.iter().map(|name| (Bytes::of(OsStr::new(name)), Bytes::of(at.as_os_str()))));
    }

    /// Hands the launch on to the next process of this program, which takes out what is sent `with` it, the last first.
    pub(crate) fn hand_on(
        self,
        socket: &UnixStream,
        with: impl IntoIterator<Item = OwnedFd>,
    ) -> io::Result<()> {
        let document = self.launch.document()?;
        let theirs = Theirs { stdin: self.stdin, stdout: self.stdout, stderr: self.stderr };
        let others: Vec<OwnedFd> = self.handles.into_iter().chain(with).collect();
        let rest = send(socket, document, &[], &theirs, &others)?;
        let mut socket = socket;
        socket.write_all(&rest)
    }

    /// Takes out the last descriptor that came.
    pub(crate) fn take_last(&mut self) -> io::Result<OwnedFd> {
        self.handles.pop().ok_or_else(missing)
    }

    /// Takes out what the program enters its group by, if it gets one: the last of what came.
    pub(crate) fn take_entrance(&mut self) -> io::Result<Option<OwnedFd>> {
        self.group().is_some().then(|| self.take_last()).transpose()
    }

    /// Enters the directory, which this process shares with the program then, and returns what starts the program.
    pub(crate) fn into_command(self) -> io::Result<Command> {
        if let Some(directory) = self.directory {
            rustix::process::fchdir(directory)?;
        }
        let Launch { program, args, env, is_on_descriptor_3, open_files, .. } = &self.launch;
        open_files.map_or(Ok(()), open_files::lower)?;
        let path = env.iter().rfind(|(name, _)| name.as_os_str() == "PATH").map(|(_, path)| path.as_os_str());
        let name = program.as_os_str();
        let mut command = if *is_on_descriptor_3 {
            descriptor3::command(name, path, None)?
        } else {
            let mut command = Command::new(search::find(name, path)?);
            command.arg0(name);
            command
        };
        command.args(args.iter().map(Bytes::as_os_str)).env_clear();
        command.envs(env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
        command.stdin(Stdio::from(self.stdin)).stdout(Stdio::from(self.stdout));
        command.stderr(Stdio::from(self.stderr));
        Ok(command)
    }
}

/// Receives a document with its descriptors.
fn receive(socket: &UnixStream) -> io::Result<(Launch, Vec<OwnedFd>)> {
    let (mut header, mut descriptors) = ([0; size_of::<Length>()], Vec::new());
    rights::receive(socket, &mut header, &mut descriptors)?;
    let length = usize::try_from(Length::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length > LAUNCH_BYTES_MAX {
        return Err(too_long(length));
    }
    let mut document = vec![0; length];
    rights::receive(socket, &mut document, &mut descriptors)?;
    Ok((serde_json::from_slice(&document)?, descriptors))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn missing() -> io::Error {
    io::Error::other("a descriptor is missing")
}

fn too_long(length: usize) -> io::Error {
    let why = format!(
        "its arguments and environment take {length} bytes, but at most {LAUNCH_BYTES_MAX} are possible"
    );
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
