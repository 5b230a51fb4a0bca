//! A tool of a server, as the engine knows it.

use super::shared::Shared;
use serde_json::Value;
use std::{fmt, sync::Arc};
use toolyard::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// A tool of a server.
pub(crate) struct RemoteTool {
    spec: ToolSpec,
    /// The server's name for it.
    pub(crate) remote_name: Arc<str>,
    /// Why it has its class.
    pub(crate) why: &'static str,
    server: Arc<Shared>,
}

impl RemoteTool {
    pub(crate) fn new(spec: ToolSpec, remote_name: String, why: &'static str, server: Arc<Shared>) -> Self {
        Self { spec, remote_name: remote_name.into(), why, server }
    }

    /// Its name in the engine.
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// Changes when its definition does, or how its server is reached.
    pub(crate) fn version(&self) -> &str {
        &self.spec.version
    }
}

impl ToolFactory for RemoteTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(RemoteCall { tool: self.remote_name.clone(), server: self.server.clone() })
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

struct RemoteCall {
    tool: Arc<str>,
    server: Arc<Shared>,
}

#[async_trait]
impl Tool for RemoteCall {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let connection = self.server.connection()?;
        connection.call(&self.tool, args, cx).await
    }
}
