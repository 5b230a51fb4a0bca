//! A connected server, and calls to it.

use crate::client::{
    protocol::{Disconnect, answer},
    questions::{CallLink, Handler, Questions, input},
};
use rmcp::{
    Peer, RoleClient,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerPeerInfo, ServerResult},
    service::{PeerRequestOptions, RequestHandle, RunningService},
};
use serde_json::Value;
use std::sync::Arc;
use toolyard::{ToolContext, ToolError, ToolOutput};

/// rmcp's service for a server.
pub(crate) type Service = RunningService<RoleClient, Handler>;

/// A connected server.
pub(crate) struct Connection {
    server: String,
    peer: Peer<RoleClient>,
    questions: Questions,
    disconnect: Disconnect,
}

impl Connection {
    pub(crate) fn new(server: &str, service: &Service, questions: Questions, disconnect: Disconnect) -> Self {
        Self { server: server.to_owned(), peer: service.peer().clone(), questions, disconnect }
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether the transport to the server is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Waits until the connection to the server has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn closed(&self) {
        self.disconnect.wait().await;
    }

    /// Calls a tool. When the call is cancelled, the server is notified, and not waited for.
    ///
    /// # Cancel safety
    /// Dropping the future notifies the server that the call is cancelled.
    pub(crate) async fn call(
        &self,
        tool: &str,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        // Kept to the end: dropping it ends what the server may say and ask about the call.
        let (link, _end_guard) = CallLink::of(cx);
        let mut answers = input::Answers::default();
        for _ in 0..input::ROUNDS_MAX {
            let mut params = params(tool, args);
            (params.input_responses, params.request_state) = answers;
            let asked = match self.round(params, &link, cx).await? {
                ServerResult::InputRequiredResult(asked) => asked,
                answer => return answer::read(&self.server, answer),
            };
            let caller = link.caller();
            let result = tokio::select! {
                biased;
                result = input::answer(&self.questions, &caller, asked) => result,
                () = cx.cancelled() => return Err(ToolError::cancelled("the call was cancelled")),
            };
            answers = result.map_err(|why| {
                ToolError::execution(format!("'{}' needs input that cannot be given: {why}", self.server))
            })?;
        }
        Err(ToolError::execution(format!("'{}' asks for input too often", self.server)))
    }

    /// Sends one request and waits for its answer.
    async fn round(
        &self,
        params: CallToolRequestParams,
        link: &CallLink,
        cx: &ToolContext,
    ) -> Result<ServerResult, ToolError> {
        let sent = self.peer.send_cancellable_request(request(params, link), options()).await;
        let failed = |error| answer::failed(&self.server, error, self.disconnect.why());
        let mut pending = PendingRequest(Some(sent.map_err(failed)?));
        tokio::select! {
            biased;
            answer = pending.answer() => answer.map_err(failed),
            () = cx.cancelled() => {
                pending.cancel().await;
                Err(ToolError::cancelled("the call was cancelled, and so was its request"))
            }
        }
    }
}

fn options() -> PeerRequestOptions {
    PeerRequestOptions::no_options()
}

fn params(tool: &str, args: &Value) -> CallToolRequestParams {
    let params = CallToolRequestParams::new(tool.to_owned());
    match args {
        Value::Object(args) => params.with_arguments(args.clone()),
        _ => params,
    }
}

fn request(params: CallToolRequestParams, link: &CallLink) -> ClientRequest {
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(link.clone());
    ClientRequest::CallToolRequest(request)
}

/// Sends a request that is not a call.
///
/// # Cancel safety
/// Dropping the future notifies the server that the request is cancelled.
pub(crate) async fn send_request(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
) -> Result<rmcp::model::ServerResult, rmcp::ServiceError> {
    let mut pending = PendingRequest(Some(peer.send_cancellable_request(request, options()).await?));
    pending.answer().await
}

/// A request that has no answer yet. Dropping it cancels the request.
struct PendingRequest(Option<RequestHandle<RoleClient>>);

impl PendingRequest {
    async fn answer(&mut self) -> Result<ServerResult, rmcp::ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(rmcp::ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed))
    }

    async fn cancel(&mut self) {
        if let Some(handle) = self.0.take() {
            cancel(handle).await;
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(cancel(handle));
        }
    }
}

async fn cancel(handle: RequestHandle<RoleClient>) {
    // An error means that the server is gone.
    let _ = handle.cancel(Some("the call was cancelled".to_owned())).await;
}
