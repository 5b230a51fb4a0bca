//! How long a server is waited for when it is asked in the newer way.
//!
//! A server that speaks only the older protocol should say that it does not know the question. Some do not answer
//! instead, and are asked in the older way after a while; in place of their answer stands one of ours.

use rmcp::model::{
    ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcResponse, RequestId, ServerJsonRpcMessage,
};
use std::time::Duration;
use tokio::time::Instant;

/// How long one that may be of the older way is waited for. One that starts slowly is asked twice, and answers either.
pub(super) const SHORT: Duration = Duration::from_secs(2);

/// How long answers to a greeting are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For that to the newer question.
    pub(super) discover: Duration,
    /// For any.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "pipes are dropped, and what waits with them")
    )]
    pub(super) any: Duration,
}

/// What stands in place of an answer that did not come: that the question is not known.
pub(super) fn unanswered(id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "it did not answer", None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

/// The newer question on its way over pipes.
#[derive(Debug)]
pub(super) struct Asked {
    patience: Duration,
    open: Option<(RequestId, Instant)>,
    /// Those that were answered in their place: what still comes is no answer to anything.
    given_up: Vec<RequestId>,
}

impl Asked {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience: patience.discover, open: None, given_up: Vec::new() }
    }

    /// It was asked.
    pub(super) fn ask(&mut self, id: RequestId) {
        self.open = Some((id, Instant::now() + self.patience));
    }

    /// Until when an answer is waited for, if one is.
    pub(super) fn until(&self) -> Option<Instant> {
        self.open.as_ref().map(|(_, until)| *until)
    }

    /// The answer in place of the one that did not come.
    pub(super) fn give_up(&mut self) -> Option<ServerJsonRpcMessage> {
        let (id, _) = self.open.take()?;
        self.given_up.push(id.clone());
        Some(unanswered(id))
    }

    /// The message, unless it answers what was given up.
    pub(super) fn heard(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
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
