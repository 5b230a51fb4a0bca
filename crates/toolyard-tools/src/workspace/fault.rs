//! What an error of the operating system means to the one who asked.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use std::io::{self, ErrorKind};

impl Workspace {
    /// The workspace's error for what happened while `name` was used.
    pub(super) fn fault(&self, name: &Name, error: io::Error) -> WorkspaceError {
        let path = name.asked();
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

/// Whether the directory handle refused to leave itself. cap-std makes up this error, so it has no number of
/// the operating system; a file whose permissions forbid the access has one.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
