//! The files that agents may use: each grant by its handle, kept from the start (AG-6).
//!
//! ```text
//!   path ─► canonical ─► the grant that covers it ─► its handle ─► the rest of the path, beneath it, through no link
//!             once        none: fs_denied                            a link has appeared: fs_denied
//! ```

use super::paths::HostPaths;
use dashmap::DashMap;
use rustix::{
    fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, open, openat2},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard::{AgentPath, FsGrant, FsMode, Opened, SessionId, ToolError};

/// No way out of a handle, and through nothing that may lead elsewhere.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// The files that each agent may use.
#[derive(Debug, Clone)]
pub(crate) struct HostFiles {
    of: Arc<DashMap<(SessionId, AgentPath), Arc<Granted>>>,
    /// What is not written, wherever it lies.
    guarded: Arc<[PathBuf]>,
}

/// What one agent may use.
#[derive(Debug)]
struct Granted {
    /// Which of the agents it is that have had its name.
    number: u64,
    paths: HostPaths,
    roots: Vec<Root>,
}

/// A grant, opened.
#[derive(Debug)]
struct Root {
    mode: FsMode,
    /// Where it lies.
    at: PathBuf,
    /// The directory that is granted, or that of the file that is.
    directory: OwnedFd,
    is_file: bool,
}

/// A file that an agent may use: its directory, and its name there.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: OwnedFd,
    pub(crate) name: std::ffi::OsString,
    /// Where it lies.
    pub(crate) at: PathBuf,
}

impl HostFiles {
    pub(crate) fn new(guarded: Vec<PathBuf>) -> Self {
        let guarded = guarded.into_iter().map(|path| path.canonicalize().unwrap_or(path));
        Self { of: Arc::default(), guarded: guarded.collect() }
    }

    /// Opens what an agent is granted. What cannot be opened now it cannot use.
    pub(crate) fn add(
        &self,
        agent: (SessionId, AgentPath),
        number: u64,
        directory: &Path,
        grants: &[FsGrant],
    ) {
        let roots = grants.iter().filter_map(|grant| {
            let opened = Root::open(grant);
            if let Err(error) = &opened {
                let (agent, path) = (agent.1.as_str(), grant.path().display());
                tracing::warn!(agent, path = %path, %error, "a granted path cannot be opened, and is not granted");
            }
            opened.ok()
        });
        let granted = Granted { number, paths: HostPaths::from_directory(directory), roots: roots.collect() };
        self.of.insert(agent, Arc::new(granted));
    }

    pub(crate) fn remove(&self, agent: &(SessionId, AgentPath), number: u64) {
        self.of.remove_if(agent, |_, granted| granted.number == number);
    }

    /// Where a path leads that an agent names, if it may use that in this mode.
    ///
    /// # Errors
    /// `fs_denied`.
    pub(crate) fn place(
        &self,
        agent: &(SessionId, AgentPath),
        mode: FsMode,
        path: &str,
    ) -> Result<Place, ToolError> {
        let denied = || denied(mode, path);
        let granted = self.of.get(agent).map(|granted| granted.clone()).ok_or_else(denied)?;
        let at = granted.paths.canonical(path).map_err(|_| denied())?;
        if mode != FsMode::Read && self.guards(&at) {
            return Err(ToolError::permission_denied(format!(
                "'{path}' governs this program, and is not written"
            )));
        }
        // Two grants together may cover both modes.
        let modes: &[FsMode] = match mode {
            FsMode::ReadWrite => &[FsMode::Read, FsMode::Write],
            FsMode::Read => &[FsMode::Read],
            FsMode::Write => &[FsMode::Write],
        };
        let covering = |mode: &FsMode| {
            let roots = granted.roots.iter().filter(|root| root.covers(*mode, &at));
            roots.max_by_key(|root| root.at.components().count()).ok_or_else(denied)
        };
        let roots = modes.iter().map(covering).collect::<Result<Vec<_>, _>>()?;
        let root = roots.last().ok_or_else(denied)?;
        root.place(at.clone()).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::XDEV) => denied(),
            _ => ToolError::execution(format!("'{path}': {error}")),
        })
    }

    /// Whether a path is that of a guarded file, or leads to one by another name.
    fn guards(&self, at: &Path) -> bool {
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let found = identity(at);
        self.guarded.iter().any(|guarded| guarded == at || (found.is_some() && identity(guarded) == found))
    }
}

/// The error for a path that an agent may not use.
pub(crate) fn denied(mode: FsMode, path: &str) -> ToolError {
    let verb = if mode == FsMode::Read { "read" } else { "write" };
    ToolError::new(toolyard::ToolErrorKind::FsDenied, format!("This agent may not {verb} '{path}'"))
}

/// Whether a link has appeared where there was none when the path was judged, or it leads into `/proc`.
pub(super) fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

impl Root {
    fn open(grant: &FsGrant) -> io::Result<Self> {
        let at = Path::new("/").join(grant.path()).canonicalize()?;
        let is_file = !at.is_dir();
        let directory = if is_file { at.parent().unwrap_or(Path::new("/")) } else { &at };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(directory, flags, Mode::empty())?;
        Ok(Self { mode: grant.mode(), at, directory, is_file })
    }

    fn covers(&self, mode: FsMode, path: &Path) -> bool {
        let has_mode = self.mode == FsMode::ReadWrite || self.mode == mode;
        has_mode && if self.is_file { path == self.at } else { path.starts_with(&self.at) }
    }

    /// The place of a path that it covers.
    fn place(&self, at: PathBuf) -> io::Result<Place> {
        let root = if self.is_file { self.at.parent().unwrap_or(&self.at) } else { &self.at };
        let rest = at.strip_prefix(root).map_err(|_| Errno::XDEV)?;
        let name = rest.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let parent = rest.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat2(self.directory.as_fd(), parent, flags, Mode::empty(), BENEATH)?;
        Ok(Place { directory, name, at })
    }
}

impl Place {
    /// Opens it to read, if it is a file: no other thing is waited for.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat2(self.directory.as_fd(), self.name(), flags, Mode::empty(), BENEATH)?);
        // What the kernel tells there is of this program, and not of the agent's.
        if is_of_this_process(&file)? {
            return Err(Errno::LOOP.into());
        }
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is no file")),
        }
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }
}

/// Whether it lies in `/proc`, where the kernel tells of this process.
fn is_of_this_process(handle: impl std::os::fd::AsFd) -> Result<bool, Errno> {
    Ok(fstatfs(handle)?.f_type == PROC_SUPER_MAGIC)
}

/// Opens what stands at a plain path relative to the root, for a sandbox.
pub(super) fn opened(path: &Path) -> io::Result<Opened> {
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let look = |flags| {
        let handle = openat2(root.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty(), BENEATH)?;
        if is_of_this_process(&handle)? { Err(Errno::LOOP) } else { Ok(handle) }
    };
    let kind = match look(OFlags::PATH) {
        Ok(handle) => File::from(handle).metadata()?.file_type(),
        Err(Errno::LOOP) => return Ok(Opened::Link),
        Err(Errno::NOENT) => return nearest(root.as_fd(), path),
        Err(error) => return Err(error.into()),
    };
    if kind.is_dir() {
        Ok(Opened::Directory(look(OFlags::RDONLY | OFlags::DIRECTORY)?.into()))
    } else if kind.is_file() {
        Ok(Opened::File(look(OFlags::RDONLY | OFlags::NONBLOCK)?.into()))
    } else {
        Err(io::Error::other("it is neither a file nor a directory"))
    }
}

/// The nearest directory above what does not exist.
fn nearest(root: BorrowedFd<'_>, path: &Path) -> io::Result<Opened> {
    for parent in path.ancestors().skip(1) {
        let shown = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(root, shown, flags, Mode::empty(), BENEATH) {
            Ok(handle) => {
                let name = path.strip_prefix(parent).unwrap_or(path).to_owned();
                return Ok(Opened::Missing { nearest: handle.into(), name });
            }
            Err(Errno::NOENT) => {}
            Err(Errno::LOOP) => return Ok(Opened::Link),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::NOENT.into())
}
