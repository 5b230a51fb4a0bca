//! Error answers to messages that are not valid requests, where rmcp would not answer.

use super::{answer::data_of, limits::NoRoom};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde::Serialize;
use serde_json::Value;
use toolyard::{CallError, ErrorKind};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Refusal {
    fn new(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { jsonrpc: "2.0", id, error: Error { code, message: message.into(), data: None } }
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

    /// For a message that would take more memory than there is.
    pub(super) fn no_room(id: Option<RequestId>, why: NoRoom) -> Self {
        match why {
            NoRoom::Ever { bytes } => {
                let why = format!(
                    "the message has so many values that it would take more than the {bytes} bytes that a client may have"
                );
                Self::invalid_request(id, why)
            }
            NoRoom::Now => {
                let why = "too many requests are not answered yet: wait for their answers";
                let error = CallError::new(ErrorKind::Overloaded, why);
                let mut refusal = Self::new(id, ErrorCode::INTERNAL_ERROR, error.to_text());
                refusal.error.data = Some(data_of(&error));
                refusal
            }
        }
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
        let Error { code, message, data } = refusal.error;
        JsonRpcMessage::error(ErrorData::new(code, message, data), refusal.id)
    }
}
