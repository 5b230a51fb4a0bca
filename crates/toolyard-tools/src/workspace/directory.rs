//! Opens a directory for work by other means than the workspace's operations.

use super::Workspace;
use crate::WorkspaceError;
use cap_std::fs::Dir;
use std::path::Path;

impl Workspace {
    /// Opens the directory at this path. The handle stays this directory, even if its name later refers to another.
    pub(crate) fn directory(&self, path: impl AsRef<Path>) -> Result<Dir, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        self.dir().open_dir(&name.inside).map_err(|error| self.io_error(&name, error))
    }
}
