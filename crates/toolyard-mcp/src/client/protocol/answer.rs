//! Turns a server's answer into the output or error of a tool.

#[cfg(feature = "http")]
use super::{
    describe,
    error::{RequestError, WebError},
};
use crate::{
    PARTS,
    client::text::{TooMany, clean},
};
#[cfg(feature = "http")]
use rmcp::transport::DynamicTransportError;
use rmcp::{
    model::{
        CallToolResult, ContentBlock, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, RequestId,
        ResourceContents, ServerJsonRpcMessage, ServerResult,
    },
    service::ServiceError,
};
use serde_json::{Value, json};
#[cfg(feature = "http")]
use std::time::Duration;
use toolyard::{Content, ToolError, ToolErrorKind, ToolOutput};

/// Maximum number of characters of a server's error message.
const MESSAGE_MAX: usize = 4000;

/// Maximum number of parts of one result. A part is small as text and large in memory.
const PARTS_MAX: usize = 10_000;

/// The code of the error that stands in for an answer which is too large to be parsed.
const TOO_LARGE: ErrorCode = ErrorCode(-32_097);

/// The code of the error that stands in for a lost answer.
#[cfg(feature = "http")]
const LOST_ANSWER: ErrorCode = ErrorCode(-32_098);

/// rmcp's answer to requests that were pending when their session ended. Its code is the same as for any error.
#[cfg(feature = "http")]
const SESSION_ENDED: &str = "streamable HTTP session was re-initialized before the response arrived";

/// The output, or what went wrong.
pub(crate) fn read(server: &str, answer: ServerResult) -> Result<ToolOutput, ToolError> {
    match answer {
        ServerResult::CallToolResult(result) if result.content.len() > PARTS_MAX => {
            Err(refuse_size(server, &format!("more than {PARTS_MAX} parts")))
        }
        ServerResult::CallToolResult(result) => Ok(output(result)),
        ServerResult::CreateTaskResult(_) => {
            Err(ToolError::execution(format!("'{server}' answered with a task, which is not supported")))
        }
        _ => {
            let what = format!("the answer of '{server}' is not a tool result");
            Err(ToolError::new(ToolErrorKind::OutputInvalid, what))
        }
    }
}

/// The error for a request without an answer. The outcome of a request that was in flight is unknown.
pub(crate) fn failed(server: &str, error: ServiceError, reason: Option<&str>) -> ToolError {
    match error {
        #[cfg(feature = "http")]
        ServiceError::McpError(error) if error.code == LOST_ANSWER || error.message == SESSION_ENDED => {
            lost_call(server, &error.message)
        }
        #[cfg(feature = "http")]
        ServiceError::TransportSend(error) => unsent(server, &error),
        ServiceError::McpError(error) if error.code == TOO_LARGE => refuse_size(server, &error.message),
        ServiceError::McpError(error) => ToolError::execution(clean::text(&error.message, MESSAGE_MAX)),
        ServiceError::UnexpectedResponse => {
            let what = format!("the answer of '{server}' is not a tool result");
            ToolError::new(ToolErrorKind::OutputInvalid, what)
        }
        _ => lost_call(server, reason.unwrap_or("the connection ended")),
    }
}

fn refuse_size(server: &str, why: &str) -> ToolError {
    let why = clean::text(why, MESSAGE_MAX);
    let what = format!("the call ran, but the answer of '{server}' is too large to be read: {why}");
    ToolError::new(ToolErrorKind::OutputTooLarge, what)
}

/// The error message that stands in for an answer which is too large to be parsed.
pub(crate) fn too_large(id: RequestId, why: TooMany) -> ServerJsonRpcMessage {
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), ErrorData::new(TOO_LARGE, why.to_string(), None)))
}

fn lost_call(server: &str, why: &str) -> ToolError {
    let why = clean::text(why, MESSAGE_MAX);
    ToolError::transient(format!("the server '{server}' was lost while the call ran: {why}"))
        .outcome_unknown()
}

/// The error message that stands in for a lost answer, so that its request ends.
#[cfg(feature = "http")]
pub(crate) fn lost_answer(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), ErrorData::new(LOST_ANSWER, why.to_owned(), None)))
}

/// The error for a request that MCP did not answer. Some errors say that the call was not made.
#[cfg(feature = "http")]
fn unsent(server: &str, error: &DynamicTransportError) -> ToolError {
    let why = describe::causes(error.error.as_ref());
    let message = format!("the server '{server}' did not accept the call: {why}");
    match describe::find(error.error.as_ref()) {
        Some(RequestError::AuthRequired(_) | RequestError::Client(WebError::Forbidden(_))) => {
            ToolError::new(ToolErrorKind::PermissionDenied, message).no_side_effect()
        }
        Some(RequestError::HttpStatus(answer)) if answer.status == 429 => {
            let error = ToolError::new(ToolErrorKind::RateLimited, message).no_side_effect();
            let seconds = answer.retry_after.as_deref().and_then(|after| after.trim().parse().ok());
            seconds.map(Duration::from_secs).into_iter().fold(error, ToolError::retry_after)
        }
        Some(RequestError::SessionExpired) => ToolError::transient(message).no_side_effect(),
        Some(RequestError::Client(WebError::Http(error))) if describe::refused(error).is_some() => {
            ToolError::new(ToolErrorKind::PermissionDenied, message).no_side_effect()
        }
        Some(RequestError::Client(WebError::Http(error))) if error.is_connect() => {
            ToolError::transient(message).no_side_effect()
        }
        _ => lost_call(server, &why),
    }
}

fn output(result: CallToolResult) -> ToolOutput {
    let parts = result.content.iter().enumerate().filter(|(_, part)| !is_plain(part));
    let originals: Vec<Value> = parts.filter_map(|(at, part)| original(at, part)).collect();
    let mut output = ToolOutput::parts(result.content.into_iter().map(part).collect());
    output.success = result.is_error != Some(true);
    if let Some(structured) = result.structured_content {
        output = output.with_structured(structured);
    }
    if !originals.is_empty() {
        output = output.with_metadata(PARTS, originals);
    }
    output
}

/// A part as it came, with its place among the others.
fn original(at: usize, part: &ContentBlock) -> Option<Value> {
    Some(json!({"at": at, "part": serde_json::to_value(part).ok()?}))
}

/// Whether the model sees all of a part.
fn is_plain(part: &ContentBlock) -> bool {
    match part {
        ContentBlock::Text(text) => text.annotations.is_none() && text.meta.is_none(),
        ContentBlock::Image(image) => image.annotations.is_none() && image.meta.is_none(),
        _ => false,
    }
}

/// What the model sees of a part.
fn part(part: ContentBlock) -> Content {
    match part {
        ContentBlock::Text(text) => Content::text(text.text),
        ContentBlock::Image(image) => Content::Image { media_type: image.mime_type, data: image.data },
        ContentBlock::Audio(audio) => Content::text(format!("[audio {}]", audio.mime_type)),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => Content::text(format!("[resource {} {}]", link.name, link.uri)),
        _ => Content::text("[content of an unknown kind]"),
    }
}

fn resource(resource: ResourceContents) -> Content {
    match resource {
        ResourceContents::TextResourceContents { text, .. } => Content::text(text),
        ResourceContents::BlobResourceContents { mime_type: Some(media_type), blob, .. }
            if media_type.starts_with("image/") =>
        {
            Content::Image { media_type, data: blob }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
            Content::text(format!("[resource {uri} {}]", mime_type.as_deref().unwrap_or("binary")))
        }
        _ => Content::text("[resource of an unknown kind]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_json(answer: Value) -> Result<ToolOutput, ToolError> {
        read("s", serde_json::from_value(answer).unwrap())
    }

    /// V5: a tool that reports failure keeps its content; data, images and resources are kept, too.
    #[test]
    fn nothing_of_an_answer_is_lost() {
        let answer = json!({
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///x", "text": "body"}},
                {"type": "resource_link", "uri": "file:///y", "name": "y"},
                {"type": "text", "text": "b", "annotations": {"priority": 1.0}},
            ],
            "structuredContent": {"n": 1},
            "isError": true,
        });
        let output = read_json(answer).unwrap();
        assert!(!output.success);
        assert_eq!(output.to_text(), "a\n[image image/png]\nbody\n[resource y file:///y]\nb");
        assert_eq!(output.structured().as_deref(), Some(&json!({"n": 1})));
        let others = output.metadata(PARTS).and_then(Value::as_array).unwrap();
        assert_eq!(
            (&others[0]["at"], &others[0]["part"]["resource"]["uri"]),
            (&json!(2), &json!("file:///x"))
        );
        assert_eq!(
            (&others[2]["at"], &others[2]["part"]["annotations"]["priority"]),
            (&json!(4), &json!(1.0))
        );
        assert_eq!(others.len(), 3);
    }

    /// V4: the model reads that the call ran.
    #[test]
    fn a_result_of_too_many_parts_is_too_large() {
        let parts = |count| json!({"content": vec![json!({"type": "text", "text": ""}); count]});
        assert_eq!(read_json(parts(PARTS_MAX)).unwrap().content.len(), PARTS_MAX);
        let error = read_json(parts(PARTS_MAX + 1)).unwrap_err();
        assert_eq!(error.kind(), ToolErrorKind::OutputTooLarge);
        assert!(error.message().starts_with("the call ran, but the answer of 's' is too large"), "{error}");
    }

    /// V4, V5: a lost answer leaves the outcome unknown, and does not claim that there was no side effect.
    #[test]
    fn a_lost_answer_is_transient_and_its_outcome_unknown() {
        let error = failed("s", ServiceError::TransportClosed, Some("it ended"));
        assert_eq!(error.kind(), ToolErrorKind::Transient);
        assert!(error.has_unknown_outcome() && !error.has_no_side_effect());
        assert_eq!(error.message(), "the server 's' was lost while the call ran: it ended");
    }
}
