//! Copies of the files that a machine is given.

use super::granted::Granted;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};
use toolyard_core::Command;

/// The most files and directories that a machine is given.
const ENTRIES_MAX: usize = 65_536;

/// A copy of a file.
pub(super) struct Copy {
    pub(super) content: Vec<u8>,
    pub(super) is_executable: bool,
}

/// All that a machine is given, by absolute path.
pub(super) struct Copied {
    root: Option<PathBuf>,
    directories: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Copy>,
    writable: Vec<PathBuf>,
    left: u64,
}

impl Copied {
    /// Copies what was granted, and what the program is made of unless that is a part of the system, of which a machine
    /// has its own. This blocks the thread.
    ///
    /// # Errors
    /// What cannot be copied, and why.
    pub(super) fn of(granted: Granted, command: &Command, files_max: u64) -> Result<Self, String> {
        let Granted { root, handles, writable } = granted;
        let at = |path: PathBuf| match &root {
            Some(root) if path.as_os_str().is_empty() => root.clone(),
            Some(root) => root.join(path),
            None => path,
        };
        let writable = writable.into_iter().map(&at).collect();
        let (directories, files) = (BTreeSet::new(), BTreeMap::new());
        let handles: Vec<_> = handles.into_iter().map(|(handle, path)| (handle, at(path))).collect();
        let mut copied = Self { root, directories, files, writable, left: files_max };
        for (handle, path) in handles {
            copied.copy(handle, path, files_max)?;
        }
        let own = std::iter::once(&command.program).chain(command.files.iter());
        for path in own.filter(|path| path.is_absolute() && !is_of_system(path)) {
            let handle = File::open(path).map_err(|error| told(path, &error))?;
            copied.copy(handle, path.clone(), files_max)?;
        }
        Ok(copied)
    }

    /// The workspace's root, if there is a workspace.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.directories.iter().cloned()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (PathBuf, &Copy)> {
        self.files.iter().map(|(path, file)| (path.clone(), file))
    }

    /// The copy of the file at this path.
    pub(super) fn file(&self, path: &Path) -> Option<&Copy> {
        self.files.get(path)
    }

    /// Whether the directory at this path was copied.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        self.directories.contains(path)
    }

    /// What may be written, with all below it.
    pub(super) fn writable(&self) -> impl Iterator<Item = PathBuf> {
        self.writable.iter().cloned()
    }

    fn copy(&mut self, handle: File, path: PathBuf, files_max: u64) -> Result<(), String> {
        if self.files.contains_key(&path) {
            return Ok(());
        }
        if self.files.len() + self.directories.len() >= ENTRIES_MAX {
            return Err(format!("it may use more than {ENTRIES_MAX} files and directories: grant less"));
        }
        let about = handle.metadata().map_err(|error| told(&path, &error))?;
        if about.is_dir() {
            return self.copy_below(handle, path, files_max);
        }
        let mut content = Vec::new();
        let read =
            handle.take(self.left + 1).read_to_end(&mut content).map_err(|error| told(&path, &error))?;
        let too_much = || {
            format!(
                "the files that it may use have more than {files_max} bytes: grant less, or set files_max"
            )
        };
        self.left =
            u64::try_from(read).ok().and_then(|read| self.left.checked_sub(read)).ok_or_else(too_much)?;
        let is_executable = about.permissions().mode() & 0o100 != 0;
        self.files.insert(path, Copy { content, is_executable });
        Ok(())
    }

    /// Copies what is in a directory: files and directories, each by the handle of the one above it and no link.
    fn copy_below(&mut self, handle: File, path: PathBuf, files_max: u64) -> Result<(), String> {
        // The handle may be one that only names the directory, and cannot be read from.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(&handle, ".", flags, Mode::empty()).and_then(Dir::new);
        let entries = readable.map_err(|error| told(&path, &error.into()))?;
        for entry in entries {
            let entry = entry.map_err(|error| told(&path, &error.into()))?;
            let name = entry.file_name();
            let kind = entry.file_type();
            let is_copied = matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Unknown);
            if matches!(name.to_bytes(), b"." | b"..") || !is_copied {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            // One that cannot be opened, or is gone, is not given.
            let Ok(opened) = openat(&handle, name, flags, Mode::empty()) else { continue };
            let opened = File::from(opened);
            if opened.metadata().is_ok_and(|about| about.is_file() || about.is_dir()) {
                self.copy(opened, below, files_max)?;
            }
        }
        self.directories.insert(path);
        Ok(())
    }
}

fn is_of_system(path: &Path) -> bool {
    toolyard_process::SYSTEM.iter().any(|part| path.starts_with(part))
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("'{}' cannot be copied for it: {error}", path.display())
}
