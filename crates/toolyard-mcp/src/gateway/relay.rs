//! Relays what a server says and asks during a call to the client that made the call.

use super::{
    asking,
    clients::{Client, Clients},
};
use rmcp::{
    ErrorData,
    model::{
        ClientResult, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ErrorCode, LoggingMessageNotificationParam,
        ProgressNotificationParam, ServerRequest,
    },
    service::ServiceError,
};
use toolyard::ToolContext;

impl Clients {
    /// Asks the user of the client of this call. If `is_certain`, the question is tied to the call's request.
    ///
    /// # Errors
    /// The answer to the server: the client cannot ask, is gone, or says that it failed.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the question.
    pub(crate) async fn elicit(
        &self,
        of: &ToolContext,
        is_certain: bool,
        form: ElicitRequestParams,
    ) -> Result<ElicitResult, ErrorData> {
        let client = self.caller(of)?;
        if !client.elicits {
            return Err(not_asked("declares no elicitation"));
        }
        match self.forward(&client, of, is_certain, asking::request(client.redactor.params(form)?)).await? {
            ClientResult::ElicitResult(result) => Ok(result),
            _ => Err(invalid_answer()),
        }
    }

    /// Asks the client of this call to use its model.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the request.
    pub(crate) async fn sample(
        &self,
        of: &ToolContext,
        is_certain: bool,
        mut asked: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let client = self.caller(of)?;
        if !client.samples {
            return Err(not_asked("declares no sampling"));
        }
        // The client sees this program as one server, so its context may include servers other than the one that asks.
        asked.include_context = None;
        let request =
            ServerRequest::CreateMessageRequest(CreateMessageRequest::new(client.redactor.params(asked)?));
        match self.forward(&client, of, is_certain, request).await? {
            ClientResult::CreateMessageResult(result) => Ok(*result),
            _ => Err(invalid_answer()),
        }
    }

    /// Passes a server's progress to the client of this call.
    pub(crate) fn step(&self, of: &ToolContext, mut step: ProgressNotificationParam) {
        let Some(client) = self.of(of.session()) else { return };
        step.message = step.message.map(|message| client.redactor.text(message));
        self.pending.add_step(of.session(), of.call_id(), step);
    }

    /// Passes a server's log line to the client of this call, if it wants that level.
    pub(crate) fn log(&self, of: &ToolContext, mut log: LoggingMessageNotificationParam) {
        let Some(client) = self.of(of.session()) else { return };
        if log.level as u8 >= client.level as u8 {
            log.logger = log.logger.map(|logger| client.redactor.text(logger));
            log.data = client.redactor.data(log.data);
            log.meta = None;
            self.pending.add_log(of.session(), of.call_id(), log);
        }
    }

    fn caller(&self, of: &ToolContext) -> Result<Client, ErrorData> {
        self.of(of.session()).ok_or_else(|| not_asked("has disconnected"))
    }

    async fn forward(
        &self,
        client: &Client,
        of: &ToolContext,
        is_certain: bool,
        request: ServerRequest,
    ) -> Result<ClientResult, ErrorData> {
        let call = is_certain.then(|| self.pending.request(of.session(), of.call_id()));
        let during = call.flatten();
        asking::send(&client.peer, request, during).await.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            error => {
                ErrorData::internal_error(format!("the client of this call did not answer: {error}"), None)
            }
        })
    }
}

/// For a client that is not asked.
fn not_asked(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("the client of this call {why}"), None)
}

fn invalid_answer() -> ErrorData {
    ErrorData::internal_error("the answer of the client of this call is not valid", None)
}
