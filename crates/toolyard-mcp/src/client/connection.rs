//! A connected server, and calls to it.

use super::{answer, caller::Sink, handler::Handler, input, questions::Questions, watched::Gone};
use rmcp::{
    Peer, RoleClient,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerPeerInfo, ServerResult},
    service::{PeerRequestOptions, RequestHandle, RunningService},
};
use serde_json::Value;
use std::sync::Arc;
use toolyard::{ToolContext, ToolError, ToolOutput};

/// rmcp's service for a server.
pub(super) type Service = RunningService<RoleClient, Handler>;

/// A connected server.
pub(super) struct Connection {
    server: String,
    peer: Peer<RoleClient>,
    questions: Questions,
    gone: Gone,
}

impl Connection {
    pub(super) fn new(server: &str, service: &Service, questions: Questions, gone: Gone) -> Self {
        Self { server: server.to_owned(), peer: service.peer().clone(), questions, gone }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether the transport to the server is closed.
    pub(super) fn is_gone(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Waits until the connection to the server has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn closed(&self) {
        self.gone.wait().await;
    }

    /// Calls a tool. When the call is cancelled, the server is notified, and not waited for.
    ///
    /// # Cancel safety
    /// Dropping the future notifies the server that the call is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        // Kept to the end: dropping it ends what the server may say and ask about the call.
        let (sink, _in_air) = Sink::of(cx);
        let mut given = input::Given::default();
        for _ in 0..input::ROUNDS_MAX {
            let mut params = params(tool, args);
            (params.input_responses, params.request_state) = given;
            let asked = match self.round(params, &sink, cx).await? {
                ServerResult::InputRequiredResult(asked) => asked,
                answer => return answer::read(&self.server, answer),
            };
            let caller = sink.caller();
            let gave = tokio::select! {
                biased;
                gave = input::give(&self.questions, &caller, asked) => gave,
                () = cx.cancelled() => return Err(ToolError::cancelled("the call was cancelled")),
            };
            given = gave.map_err(|why| {
                ToolError::execution(format!("'{}' needs input that cannot be given: {why}", self.server))
            })?;
        }
        Err(ToolError::execution(format!("'{}' asks for input too often", self.server)))
    }

    /// Sends one request and waits for its answer.
    async fn round(
        &self,
        params: CallToolRequestParams,
        sink: &Sink,
        cx: &ToolContext,
    ) -> Result<ServerResult, ToolError> {
        let sent = self.peer.send_cancellable_request(request(params, sink), options()).await;
        let failed = |error| answer::failed(&self.server, error, self.gone.why());
        let mut in_air = InAir(Some(sent.map_err(failed)?));
        tokio::select! {
            biased;
            answer = in_air.answer() => answer.map_err(failed),
            () = cx.cancelled() => {
                in_air.cancel().await;
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

fn request(params: CallToolRequestParams, sink: &Sink) -> ClientRequest {
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(sink.clone());
    ClientRequest::CallToolRequest(request)
}

/// Sends a request that is not a call.
///
/// # Cancel safety
/// Dropping the future notifies the server that the request is cancelled.
pub(super) async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
) -> Result<rmcp::model::ServerResult, rmcp::ServiceError> {
    let mut in_air = InAir(Some(peer.send_cancellable_request(request, options()).await?));
    in_air.answer().await
}

/// A request that has no answer yet. Dropping it cancels the request.
struct InAir(Option<RequestHandle<RoleClient>>);

impl InAir {
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

impl Drop for InAir {
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
