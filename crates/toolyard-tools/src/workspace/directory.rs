//! Opens a directory for work by other means than the workspace's operations.

use super::Workspace;
use crate::WorkspaceError;
use std::{fs::File, path::Path};

impl Workspace {
    /// Opens the directory at this path, for a process to start in. The handle stays this directory, even if its name
    /// later refers to another.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, `NotFound`, `NotADirectory`, and errors of the operating system.
    pub fn directory(&self, path: impl AsRef<Path>) -> Result<File, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        let opened = self.dir().open_dir(&name.inside).map_err(|error| self.io_error(&name, error))?;
        Ok(opened.into_std_file())
    }
}
