//! Opening a directory, for who works in it by other means.

use super::Workspace;
use crate::WorkspaceError;
use cap_std::fs::Dir;
use std::path::Path;

impl Workspace {
    /// The directory of this path, open. Whatever its name comes to mean later, the handle stays this directory.
    pub(crate) fn directory(&self, path: impl AsRef<Path>) -> Result<Dir, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        self.dir().open_dir(&name.inside).map_err(|error| self.fault(&name, error))
    }
}
