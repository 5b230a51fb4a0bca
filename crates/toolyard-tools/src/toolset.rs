//! A workspace and the tools over it, as one value.

use crate::{Workspace, WorkspaceError, tools};
use std::{path::Path, sync::Arc};
use toolyard_core::Toolset;

/// Opens `root` as a workspace, with the file tools over it; see [`Workspace::open`]. An engine that takes the set
/// registers the tools, gives the workspace to every handler, and checks the paths in calls against it.
///
/// # Errors
/// [`WorkspaceError::Root`] when `root` cannot be opened as a directory.
///
/// # Examples
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let root = dir.path();
/// let set = toolyard_tools::workspace(root)?;
/// let names: Vec<_> = set.tools.iter().map(|tool| tool.spec().name).collect();
/// assert_eq!(names, ["read_file", "list_dir", "write_file", "patch_file"]);
/// assert!(set.scope.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn workspace(root: impl AsRef<Path>) -> Result<Toolset, WorkspaceError> {
    let workspace = Arc::new(Workspace::open(root)?);
    Ok(Toolset::new(tools::workspace_tools()).workspace(workspace))
}
