//! Opens a file without blocking on pipes and other special files.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use cap_std::fs::{File, FileType, Metadata, OpenOptions};

/// `O_NONBLOCK`, or 0 where its value is not known. std does not export it, and one number does not justify a
/// dependency on libc bindings.
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
    /// Checks the type twice. The first check avoids opening pipes and devices at all; the second is on the opened
    /// file, so it holds even if the name was replaced in between. The open itself does not wait for the other end
    /// of a pipe.
    pub(super) fn open_file(&self, name: &Name) -> Result<(File, Metadata), WorkspaceError> {
        let io_error = |error| self.io_error(name, error);
        require_file(name, &self.dir().metadata(&name.inside).map_err(io_error)?)?;
        let mut options = OpenOptions::new();
        nonblocking(options.read(true));
        let file = self.dir().open_with(&name.inside, &options).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        require_file(name, &metadata)?;
        Ok((file, metadata))
    }
}

/// Makes an open return at once instead of waiting for the other end of a pipe.
#[cfg(unix)]
pub(super) fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    cap_std::fs::OpenOptionsExt::custom_flags(options, NONBLOCK)
}

#[cfg(not(unix))]
pub(super) fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Fails unless this is a regular file.
pub(super) fn require_file(name: &Name, metadata: &Metadata) -> Result<(), WorkspaceError> {
    if metadata.is_file() {
        return Ok(());
    }
    let path = name.requested();
    let is = kind_of(metadata.file_type());
    Err(WorkspaceError::NotAFile { path, is })
}

#[cfg(unix)]
pub(super) fn kind_of(file_type: FileType) -> &'static str {
    use cap_std::fs::FileTypeExt as _;
    match file_type {
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
pub(super) fn kind_of(file_type: FileType) -> &'static str {
    if file_type.is_dir() { "a directory" } else { "a device" }
}
