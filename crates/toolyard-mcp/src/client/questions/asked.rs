//! Questions that a server asks during a call: passed on to the client of that call, or refused.

use super::{caller::Caller, calls::Calls, form::Form, prompt};
use crate::{client::text::clean, gateway::Clients};
use rmcp::{
    ErrorData, RoleClient,
    model::{
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorCode,
        InputRequest,
    },
    service::{InboundStreamOrigin, RequestContext},
};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Maximum number of questions of a server at once; more are refused.
const OPEN_MAX: usize = 16;

/// Maximum size of a question in bytes. A longer one is refused: nobody would answer all of it.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The questions of one server.
#[derive(Clone)]
pub(crate) struct Questions {
    server: Arc<str>,
    calls: Calls,
    /// Permits for questions; `None` if the server may ask nothing.
    permits: Option<Arc<Semaphore>>,
}

impl Questions {
    /// The questions of a server; `may_ask` is whether it may ask anything.
    pub(crate) fn new(server: &str, calls: Calls, may_ask: bool) -> Self {
        let permits = may_ask.then(|| Arc::new(Semaphore::new(OPEN_MAX)));
        Self { server: server.into(), calls, permits }
    }

    /// The calls that the questions may belong to.
    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Whether the server may ask anything.
    pub(crate) fn are_allowed(&self) -> bool {
        self.permits.is_some()
    }

    /// Asks the user of a client. The server may withdraw the question, and the end of its call does.
    pub(crate) async fn elicit(
        &self,
        form: ElicitRequestParams,
        context: &RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.elicit_of(&self.caller(context)?, form, &context.ct).await
    }

    /// Asks the model of a client, in the same way.
    pub(crate) async fn sample(
        &self,
        asked: CreateMessageRequestParams,
        context: &RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sample_of(&self.caller(context)?, asked, &context.ct).await
    }

    /// Answers what a call needs before it can go on.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn input(&self, caller: &Caller, request: InputRequest) -> Result<Value, ErrorData> {
        // Only the end of the call withdraws this question.
        let never = CancellationToken::new();
        let answer = match request {
            InputRequest::Elicitation(request) => {
                serde_json::to_value(self.elicit_of(caller, request.params, &never).await?)
            }
            InputRequest::CreateMessage(request) => {
                serde_json::to_value(self.sample_of(caller, request.params, &never).await?)
            }
            _ => return Err(refused("roots are not supported")),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn elicit_of(
        &self,
        caller: &Caller,
        form: ElicitRequestParams,
        withdrawn: &CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let (_permit, clients) = (self.permit()?, clients(caller)?);
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = form else {
            return Err(unfit("only elicitation by form is supported"));
        };
        if message.len() > MESSAGE_BYTES_MAX {
            let why = format!("the question has more than {MESSAGE_BYTES_MAX} bytes: ask in fewer words");
            return Err(unfit(why));
        }
        let form = Form::of(requested_schema).map_err(unfit)?;
        let asked = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.signed(&message),
            requested_schema: form.schema.clone(),
        };
        let asking = clients.elicit(&caller.call.context, caller.is_certain, asked);
        Ok(form.answer(answered(asking, caller, withdrawn).await?))
    }

    async fn sample_of(
        &self,
        caller: &Caller,
        asked: CreateMessageRequestParams,
        withdrawn: &CancellationToken,
    ) -> Result<CreateMessageResult, ErrorData> {
        let (_permit, clients) = (self.permit()?, clients(caller)?);
        let asked = prompt::fit(asked).map_err(unfit)?;
        answered(clients.sample(&caller.call.context, caller.is_certain, asked), caller, withdrawn).await
    }

    fn caller(&self, context: &RequestContext<RoleClient>) -> Result<Caller, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        self.calls.caller(origin).map_err(|unclear| refused(&unclear.to_string()))
    }

    fn permit(&self) -> Result<SemaphorePermit<'_>, ErrorData> {
        let permits = self.permits.as_ref().ok_or_else(|| refused("servers may not ask questions here"))?;
        permits.try_acquire().map_err(|_| refused("too many questions are open already"))
    }

    /// A message, never cut, that names the server, so that its question does not pass for one of this program's.
    fn signed(&self, message: &str) -> String {
        format!("The MCP server '{}' asks: {}", self.server, clean::text(message, MESSAGE_BYTES_MAX))
    }
}

fn clients(caller: &Caller) -> Result<&Clients, ErrorData> {
    caller.call.context.resource::<Clients>().ok_or_else(|| refused("servers may not ask questions here"))
}

/// Waits for the answer, unless the server or the end of its call withdraws the question first.
async fn answered<T>(
    asking: impl Future<Output = Result<T, ErrorData>>,
    caller: &Caller,
    withdrawn: &CancellationToken,
) -> Result<T, ErrorData> {
    tokio::select! {
        biased;
        answer = asking => answer,
        () = caller.ended() => Err(refused("the call has ended")),
        () = withdrawn.cancelled() => Err(refused("the question was withdrawn")),
    }
}

fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why.to_owned(), None)
}

/// For a question that is not passed on.
fn unfit(why: impl ToString) -> ErrorData {
    ErrorData::invalid_params(why.to_string(), None)
}
