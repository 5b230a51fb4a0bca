//! What a server may ask of us: to look at its tools again, and, where it may, the client of a call.

use super::questions::Questions;
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

/// Hears that the list of tools has changed, and what is asked.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) changed: Arc<Notify>,
    pub(super) questions: Questions,
}

impl Handler {
    pub(super) fn new(questions: Questions) -> Self {
        Self { changed: Arc::default(), questions }
    }

    /// What a server may ask. Whether the client of a call can answer that is known only then.
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
        // What is said in the older way of greeting; the newer has no such.
        ClientConfig::new(self.capabilities(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
