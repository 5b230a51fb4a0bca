//! A workspace and the tools over it, as one value.

use crate::{Workspace, WorkspaceError, tools};
use std::{fmt, path::Path, sync::Arc, vec};
use toolyard_core::ToolFactory;

/// A workspace and the tools over it.
///
/// As an iterator it gives its tools, so it can be handed over wherever tools are taken. They hold the
/// workspace themselves and use it for calls whose context brings none.
#[derive(Clone)]
pub struct Toolset {
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// The tools over it.
    pub tools: Vec<Arc<dyn ToolFactory>>,
}

/// Opens `root` as a workspace, with the file tools over it; see [`Workspace::open`].
///
/// # Errors
/// [`WorkspaceError::Root`] when `root` cannot be opened as a directory.
///
/// # Examples
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let root = dir.path();
/// let set = toolyard_tools::workspace(root)?;
/// let names: Vec<_> = set.into_iter().map(|tool| tool.spec().name).collect();
/// assert_eq!(names, ["read_file", "list_dir", "write_file", "patch_file"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn workspace(root: impl AsRef<Path>) -> Result<Toolset, WorkspaceError> {
    let workspace = Arc::new(Workspace::open(root)?);
    let tools = tools::over(&workspace);
    Ok(Toolset { workspace, tools })
}

impl IntoIterator for Toolset {
    type Item = Arc<dyn ToolFactory>;
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name).collect();
        f.debug_struct("Toolset")
            .field("workspace", &self.workspace)
            .field("tools", &names)
            .finish()
    }
}
