//! Handlers of the tools that are measured.

use serde_json::Value;
use std::time::Duration;
use tokio::{task::yield_now, time::sleep};
use toolyard::{Tool, ToolContext, ToolError, ToolOutput, async_trait};

/// What a handler does before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// Nothing: it is ready at once.
    Ready,
    /// It is pending once, and woken at once.
    Yields,
    /// It sleeps.
    Sleeps(Duration),
    /// It requests its cancel token and checks it once. Without an engine there is no token, and it does nothing.
    AsksForToken,
}

impl Handler {
    /// Does the work that needs no engine.
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
