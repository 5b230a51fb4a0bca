//! Opening a file without being kept waiting by what is no file.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use cap_std::fs::{File, FileType, Metadata, OpenOptions};

/// `O_NONBLOCK`, or nothing where its value is not known. std does not name it, and one number is no reason to
/// depend on a binding to libc.
#[cfg(unix)]
const NONBLOCK: i32 = {
    let linux = cfg!(any(target_os = "linux", target_os = "android"));
    let odd = cfg!(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64"));
    let bsd = cfg!(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ));
    if linux && !odd {
        0o4000
    } else if bsd {
        0x4
    } else {
        0
    }
};

impl Workspace {
    /// Opens an existing regular file.
    ///
    /// Looks twice. The first look spares pipes and devices the touch of being opened; the second, at what
    /// was opened, holds even if the name changed hands in between, and the open itself does not wait for the
    /// other end of a pipe.
    pub(super) fn open_file(&self, name: &Name) -> Result<(File, Metadata), WorkspaceError> {
        let fault = |error| self.fault(name, error);
        demand_file(name, &self.dir().metadata(&name.inside).map_err(fault)?)?;
        let mut options = OpenOptions::new();
        dont_wait(options.read(true));
        let file = self.dir().open_with(&name.inside, &options).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        demand_file(name, &metadata)?;
        Ok((file, metadata))
    }
}

/// Makes an open that would wait, for the other end of a pipe, return at once.
#[cfg(unix)]
pub(super) fn dont_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    cap_std::fs::OpenOptionsExt::custom_flags(options, NONBLOCK)
}

#[cfg(not(unix))]
pub(super) fn dont_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// An error unless it is a regular file.
pub(super) fn demand_file(name: &Name, metadata: &Metadata) -> Result<(), WorkspaceError> {
    if metadata.is_file() {
        return Ok(());
    }
    let path = name.asked();
    let is = kind_of(metadata.file_type());
    Err(WorkspaceError::NotAFile { path, is })
}

#[cfg(unix)]
fn kind_of(file_type: FileType) -> &'static str {
    use cap_std::fs::FileTypeExt as _;
    match file_type {
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn kind_of(file_type: FileType) -> &'static str {
    if file_type.is_dir() { "a directory" } else { "a device" }
}
