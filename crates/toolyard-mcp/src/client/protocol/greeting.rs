//! How long to wait for a server that is greeted in the newer way.
//!
//! A server that speaks only the older protocol should answer that it does not know the method. Some do not answer at
//! all. After a while an answer of ours stands in for theirs, and they are greeted in the older way.

use rmcp::model::{
    ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcResponse, RequestId, ServerJsonRpcMessage,
};
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait if a server may know only the older way. A slow starter is greeted twice, and answers either.
pub(crate) const DISCOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the answers to a greeting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerTimeouts {
    /// For the answer to the newer greeting.
    pub(crate) discover: Duration,
    /// For any answer.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "over pipes, dropping them ends the wait"))]
    pub(crate) any: Duration,
}

/// The error that stands in for an answer that did not arrive: the method is not known.
pub(crate) fn unanswered(id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "it did not answer", None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

/// The newer greeting in flight over pipes.
#[derive(Debug)]
pub(crate) struct PendingDiscover {
    timeout: Duration,
    open: Option<(RequestId, Instant)>,
    /// The greetings that were answered in the server's place: late answers to them are dropped.
    given_up: Vec<RequestId>,
}

impl PendingDiscover {
    pub(crate) fn new(timeouts: AnswerTimeouts) -> Self {
        Self { timeout: timeouts.discover, open: None, given_up: Vec::new() }
    }

    /// Notes that the greeting was sent.
    pub(crate) fn sent(&mut self, id: RequestId) {
        self.open = Some((id, Instant::now() + self.timeout));
    }

    /// The deadline for the answer, if one is awaited.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.as_ref().map(|(_, deadline)| *deadline)
    }

    /// Gives up waiting; returns the answer that stands in.
    pub(crate) fn give_up(&mut self) -> Option<ServerJsonRpcMessage> {
        let (id, _) = self.open.take()?;
        self.given_up.push(id.clone());
        Some(unanswered(id))
    }

    /// The message, unless it answers a greeting that was given up.
    pub(crate) fn filter(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            JsonRpcMessage::Response(JsonRpcResponse { id, .. }) => Some(id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => return Some(message),
        };
        if id.is_some_and(|id| self.given_up.contains(id)) {
            return None;
        }
        self.open = None;
        Some(message)
    }
}
