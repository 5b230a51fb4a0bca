//! What a client is told of a message that makes no request, where rmcp would tell it nothing.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde::Serialize;

/// An answer to a message that came to nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Refusal {
    jsonrpc: &'static str,
    /// That of the request, as far as it can be made out; JSON-RPC has it `null` where not, and rmcp would leave it out.
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

    /// Of what is no JSON.
    pub(super) fn no_json(why: impl Into<String>) -> Self {
        Self::new(None, ErrorCode::PARSE_ERROR, why)
    }

    /// Of JSON that is no request.
    pub(super) fn no_request(id: Option<RequestId>, why: impl Into<String>) -> Self {
        Self::new(id, ErrorCode::INVALID_REQUEST, why)
    }

    /// Of a request whose parameters are not what they should be.
    pub(super) fn bad_params(id: RequestId, why: impl Into<String>) -> Self {
        Self::new(Some(id), ErrorCode::INVALID_PARAMS, why)
    }

    /// Of a second request under the id of one that is not answered yet.
    pub(super) fn twice(id: RequestId) -> Self {
        let why =
            format!("the id {id} is that of a request that is not answered yet; every request needs its own");
        Self::no_request(Some(id), why)
    }
}

impl From<Refusal> for ServerJsonRpcMessage {
    fn from(refusal: Refusal) -> Self {
        let Error { code, message } = refusal.error;
        JsonRpcMessage::error(ErrorData::new(code, message, None), refusal.id)
    }
}
