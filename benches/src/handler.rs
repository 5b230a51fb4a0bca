//! What the tools do that are measured.

use serde_json::Value;
use std::time::Duration;
use tokio::{task::yield_now, time::sleep};
use toolyard::{Tool, ToolContext, ToolError, ToolOutput, async_trait};

/// What a handler does before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// Nothing: it is ready at once.
    Ready,
    /// It is pending once, and woken at once.
    Yields,
    /// It sleeps.
    Sleeps(Duration),
    /// It asks for its cancel token and looks at it once. Where there is none it does nothing.
    AsksForToken,
}

impl Handler {
    /// Does it, but for what only an engine has.
    pub async fn handle(self) {
        match self {
            Self::Ready | Self::AsksForToken => {}
            Self::Yields => yield_now().await,
            Self::Sleeps(how_long) => sleep(how_long).await,
        }
    }
}

#[async_trait]
impl Tool for Handler {
    async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if *self == Self::AsksForToken && cx.cancel_token().is_cancelled() {
            return Err(ToolError::execution("nobody cancels here"));
        }
        self.handle().await;
        Ok(ToolOutput::text(String::new()))
    }
}
