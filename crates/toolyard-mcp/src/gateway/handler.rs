//! Handles a client's requests.

use super::{
    answer,
    arrival::Arrival,
    connection::{Connection, SessionGuard},
    listing,
    notes::Notes,
    request,
};
use futures::poll;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        SetLevelRequestParams,
    },
    service::RequestContext,
};
use std::{borrow::Cow, pin::pin, sync::Arc, task::Poll};
use toolyard::{Call, Outcome};

/// Methods that rmcp treats as unknown if their parameters are wrong.
const KNOWN: [&str; 3] = ["tools/call", "tools/list", "logging/setLevel"];

/// One connection, as rmcp drives it.
pub(super) struct Handler {
    connection: Arc<Connection>,
    /// Ends the session together with the connection.
    _guard: SessionGuard,
}

impl Handler {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { _guard: SessionGuard(connection.clone()), connection }
    }

    /// Runs a call in its place behind the calls that arrived before it.
    async fn run(
        &self,
        call: Call,
        arrival: Option<Arrival>,
        context: &RequestContext<RoleServer>,
    ) -> Outcome {
        let session = self.connection.session(context);
        let notes = Notes::new(context.meta.get_progress_token());
        let pending = &self.connection.clients().pending;
        let pending_call = pending.register(session.id(), &call.id, context.id.clone(), notes);
        let mut running = pin!(session.call(call));
        if let Some(arrival) = &arrival {
            arrival.turn().await;
        }
        // The first poll hands the call to the engine. Whatever it waits for there, the next call need not wait here.
        let handed = poll!(running.as_mut());
        drop(arrival);
        match handed {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => pending_call.notify_during(&context.peer, running).await,
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolyard", env!("CARGO_PKG_VERSION")))
    }

    /// The versions that start with `initialize`. In later ones a server cannot ask its client anything, it can only
    /// answer that it needs more input. Clients that speak later versions speak these too.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.connection.session(&context);
        let entries = self.connection.engine().definitions_for(session);
        let cursor = request.and_then(|request| request.cursor);
        listing::page(entries, cursor.as_deref(), |entry| session.shown_spec(entry))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arrival = context.extensions.remove::<Arrival>();
        let call = request::read(request, &context.id, &context.meta)?;
        // The answer to a cancelled request is never read.
        let cancelled = || ErrorData::internal_error("the request was cancelled", None);
        if context.ct.is_cancelled() {
            return Err(cancelled());
        }
        let outcome = tokio::select! {
            biased;
            outcome = self.run(call, arrival, &context) => outcome,
            // Dropping the dispatch cancels the call (SC-4).
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        answer::write(outcome, self.connection.can_ask(&context)).map(CallToolResponse::from)
    }

    /// Sets the lowest level of server logs that the client wants during its calls.
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.clients().set_level(self.connection.session(&context).id(), request.level);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if KNOWN.contains(&request.method.as_str()) {
            let why = format!("invalid parameters for {}", request.method);
            return Err(ErrorData::invalid_params(why, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}
