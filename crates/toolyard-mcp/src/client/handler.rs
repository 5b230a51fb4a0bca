//! What a server may ask of us: nothing but to look at its tools again.

use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::NotificationContext,
};
use std::sync::Arc;
use tokio::sync::Notify;

/// Hears that the list of tools has changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Handler {
    pub(super) changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("toolyard", env!("CARGO_PKG_VERSION"));
        // What is said in the older way of greeting; the newer has no such.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
