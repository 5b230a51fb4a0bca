//! Handles what a server asks: to read its tools again and, if it may, to question the client of a call.

use super::asked::Questions;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationCapability, FormElicitationCapability, Implementation,
        ProtocolVersion, SamplingCapability,
    },
    service::{NotificationContext, RequestContext},
};
use std::sync::Arc;
use tokio::sync::Notify;

/// Handles notifications that the list of tools has changed, and questions.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) changed: Arc<Notify>,
    pub(crate) questions: Questions,
}

impl Handler {
    pub(crate) fn new(questions: Questions) -> Self {
        Self { changed: Arc::default(), questions }
    }

    /// Declares what a server may ask. Whether the client of a call can answer is only known during the call.
    fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        if self.questions.are_allowed() {
            let form = FormElicitationCapability::default();
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
            capabilities.sampling = Some(SamplingCapability::default());
        }
        capabilities
    }
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn create_elicitation(
        &self,
        form: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.questions.elicit(form, &context).await
    }

    async fn create_message(
        &self,
        asked: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.questions.sample(asked, &context).await
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("toolyard", env!("CARGO_PKG_VERSION"));
        // The version is for the older greeting; the newer one does not use it.
        ClientConfig::new(self.capabilities(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
