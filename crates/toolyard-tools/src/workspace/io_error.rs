//! Translates errors of the operating system for the caller.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use std::io::{self, ErrorKind};

impl Workspace {
    /// The workspace's error for an I/O error on `name`.
    pub(super) fn io_error(&self, name: &Name, error: io::Error) -> WorkspaceError {
        let path = name.requested();
        match error.kind() {
            _ if is_escape(&error) => name.escape(),
            ErrorKind::NotFound => {
                let listing = self.nearby(&name.inside);
                WorkspaceError::NotFound { path, listing }
            }
            ErrorKind::NotADirectory => WorkspaceError::NotADirectory { path },
            ErrorKind::IsADirectory => WorkspaceError::NotAFile { path, is: "a directory" },
            ErrorKind::DirectoryNotEmpty => WorkspaceError::NotEmpty { path },
            ErrorKind::InvalidFilename => name.bad("a part of it is longer than a file name may be"),
            _ => WorkspaceError::Io { path, error },
        }
    }
}

/// Whether the directory handle refused a path that leaves it. cap-std makes this error itself, so it has no error
/// number of the operating system; an error because of a file's permissions has one.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
