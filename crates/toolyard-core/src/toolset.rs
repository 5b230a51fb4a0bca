//! Tools that belong together, with what they need to run.

use crate::{PathScope, Resources, ToolFactory};
use std::{fmt, sync::Arc};

/// Tools that belong together, with their resources and the workspace that confines their paths. An engine takes all of
/// it in one step.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Toolset {
    /// The tools.
    pub tools: Vec<Arc<dyn ToolFactory>>,
    /// The resources they ask for.
    pub resources: Resources,
    /// The workspace that their paths have to stay in.
    pub scope: Option<Arc<dyn PathScope>>,
}

impl Toolset {
    /// A set of these tools, without resources or workspace.
    pub fn new(tools: Vec<Arc<dyn ToolFactory>>) -> Self {
        Self { tools, ..Self::default() }
    }

    /// Adds a workspace: the tools reach it as a resource, and paths in their arguments are checked against it.
    #[must_use]
    pub fn workspace<W: PathScope + 'static>(mut self, workspace: Arc<W>) -> Self {
        self.resources = self.resources.with_shared(workspace.clone());
        self.scope = Some(workspace);
        self
    }
}

impl From<Vec<Arc<dyn ToolFactory>>> for Toolset {
    fn from(tools: Vec<Arc<dyn ToolFactory>>) -> Self {
        Self::new(tools)
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name).collect();
        f.debug_struct("Toolset")
            .field("tools", &names)
            .field("resources", &self.resources)
            .finish_non_exhaustive()
    }
}
