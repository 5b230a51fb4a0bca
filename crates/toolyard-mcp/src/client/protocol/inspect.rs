//! Inspects a server's messages before rmcp sees them, over either transport: its progress, its log, its answers to
//! calls, and their end.

use crate::client::questions::{CallLink, Calls};
use rmcp::{
    RoleClient,
    model::{ClientRequest, GetMeta, JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The reason why a connection ended if none is known.
pub(crate) const ENDED: &str = "the connection ended";

/// Why a connection ended, once it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disconnect(Arc<OnceLock<String>>, CancellationToken);

impl Disconnect {
    /// Records the end; the first reason stays.
    pub(crate) fn record(&self, why: impl ToString) {
        let _ = self.0.set(why.to_string());
        self.1.cancel();
    }

    /// Waits until the connection has ended.
    pub(crate) async fn wait(&self) {
        self.1.cancelled().await;
    }

    /// The reason, if the connection has ended.
    pub(crate) fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// A transport to a server whose messages are inspected.
pub(crate) struct Inspected<T> {
    inner: T,
    calls: Calls,
    disconnect: Disconnect,
}

impl<T> Inspected<T> {
    pub(crate) fn new(inner: T, calls: Calls, disconnect: Disconnect) -> Self {
        Self { inner, calls, disconnect }
    }

    /// Records a call before its request is sent.
    fn track_call(&self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        let ClientRequest::CallToolRequest(call) = &request.request else { return };
        let token = request.request.get_meta().get_progress_token();
        if let Some(link) = call.extensions.get::<CallLink>() {
            self.calls.track(request.id.clone(), token, link);
        }
    }

    /// Handles a message from the server; `None` if rmcp does not need it.
    fn handle(&self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let note = match message {
            JsonRpcMessage::Notification(note) => note,
            JsonRpcMessage::Response(answer) => {
                self.calls.answered(&answer.id);
                return Some(JsonRpcMessage::Response(answer));
            }
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| self.calls.answered(id));
                return Some(JsonRpcMessage::Error(error));
            }
            message => return Some(message),
        };
        match note.notification {
            ServerNotification::ProgressNotification(progress) => self.calls.progress(&progress.params),
            ServerNotification::LoggingMessageNotification(log) => self.calls.log(log.params),
            _ => return Some(JsonRpcMessage::Notification(note)),
        }
        None
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Inspected<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.track_call(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.disconnect.record(ENDED);
                return None;
            };
            if let Some(message) = self.handle(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.disconnect.record("the connection was closed");
        self.inner.close().await
    }
}
