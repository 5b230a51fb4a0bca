//! Error answers to messages that are not valid requests, where rmcp would not answer.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde::Serialize;

/// An error answer to a message that is not passed to rmcp.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Refusal {
    jsonrpc: &'static str,
    /// The id of the request if it can be made out. If not, JSON-RPC requires `null`, where rmcp would omit the field.
    pub(super) id: Option<RequestId>,
    error: Error,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Error {
    code: ErrorCode,
    message: String,
}

impl Refusal {
    fn new(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { jsonrpc: "2.0", id, error: Error { code, message: message.into() } }
    }

    /// For a message that is not JSON.
    pub(super) fn not_json(why: impl Into<String>) -> Self {
        Self::new(None, ErrorCode::PARSE_ERROR, why)
    }

    /// For JSON that is not a valid request.
    pub(super) fn invalid_request(id: Option<RequestId>, why: impl Into<String>) -> Self {
        Self::new(id, ErrorCode::INVALID_REQUEST, why)
    }

    /// For a request whose parameters are wrong.
    pub(super) fn invalid_params(id: RequestId, why: impl Into<String>) -> Self {
        Self::new(Some(id), ErrorCode::INVALID_PARAMS, why)
    }

    /// For a second request under the id of one that is not answered yet.
    pub(super) fn duplicate_id(id: RequestId) -> Self {
        let why = format!(
            "the id {id} belongs to a request that is not answered yet: give every request its own id"
        );
        Self::invalid_request(Some(id), why)
    }
}

impl From<Refusal> for ServerJsonRpcMessage {
    fn from(refusal: Refusal) -> Self {
        let Error { code, message } = refusal.error;
        JsonRpcMessage::error(ErrorData::new(code, message, None), refusal.id)
    }
}
