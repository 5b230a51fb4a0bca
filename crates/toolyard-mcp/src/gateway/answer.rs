//! Turns a call's outcome into the answer to the client.

use crate::PARTS;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, MetaObject},
};
use serde_json::Value;
use std::borrow::Cow;
use toolyard::{CallError, Content, ErrorKind, Outcome, Routing, ToolOutput, wording};
use toolyard_wire::{FailureMeta, ResultMeta};

/// The advice in a refusal when the client cannot ask its user (PO-3).
const CANNOT_ASK: &str = "This client cannot ask for approval, because it declares no elicitation. Do not repeat this call; say what you need. The operator of the gateway may allow the tool.";

/// The result of a call; `can_ask` is whether its client can ask its user for approval.
///
/// # Errors
/// `-32602` for a tool that did not exist when it was called, as MCP requires. Any other failure is a result.
pub(super) fn write(outcome: Outcome, can_ask: bool) -> Result<CallToolResult, ErrorData> {
    let meta = ResultMeta::of(&outcome).to_shared();
    let note = outcome.note();
    let mut result = match outcome.status {
        Ok(output) => success(&output),
        Err(mut error) => {
            if error.message == wording::NOBODY_TO_ASK && !can_ask {
                *error = error.with_advice(CANNOT_ASK);
            }
            // A tool that is removed while its call waits did exist when it was called.
            if error.kind == ErrorKind::NotFound && outcome.routing == Routing::ShortCircuit {
                return Err(ErrorData::invalid_params(error.to_text(), Some(data_of(&error))));
            }
            failure(&error)
        }
    };
    if let Some(note) = note {
        result.content.insert(0, ContentBlock::text(note));
    }
    result.meta = Some(MetaObject(meta));
    Ok(result)
}

/// The data of a JSON-RPC error: what machines read of a failure.
pub(super) fn data_of(error: &CallError) -> Value {
    Value::Object(FailureMeta::of(error).to_shared())
}

fn success(output: &ToolOutput) -> CallToolResult {
    let mut result = CallToolResult::success(blocks(output));
    result.structured_content = data(output);
    result
}

/// Gives the tool's output, if any, as on success, between the engine's message and advice where they add something.
fn failure(error: &CallError) -> CallToolResult {
    let Some(output) = error.output() else {
        return CallToolResult::error(vec![ContentBlock::text(error.to_text())]);
    };
    let text = output.to_text();
    // The message of a tool that reports failure is the first line of its output.
    let message = (!text.starts_with(&error.message)).then_some(error.message.as_str());
    let advice = Some(&*error.advice).filter(|advice| !advice.is_empty());
    let content = message.map(ContentBlock::text).into_iter().chain(blocks(output));
    let mut result = CallToolResult::error(content.chain(advice.map(ContentBlock::text)).collect());
    result.structured_content = data(output);
    result
}

/// The content for the model, each part in its original form and place.
fn blocks(output: &ToolOutput) -> Vec<ContentBlock> {
    let mut content: Vec<ContentBlock> = output.content.iter().map(part).collect();
    if content.is_empty() && output.has_structured() {
        content.push(ContentBlock::text(output.to_text()));
    }
    restore(output, &mut content);
    content
}

/// The structured content, if it is an object: clients of older protocols accept nothing else.
fn data(output: &ToolOutput) -> Option<Value> {
    output.structured().filter(|data| data.is_object()).map(Cow::into_owned)
}

fn part(content: &Content) -> ContentBlock {
    match content {
        Content::Text { text } => ContentBlock::text(text.as_str()),
        Content::Image { media_type, data } => ContentBlock::image(data.as_str(), media_type.as_str()),
        other => ContentBlock::text(ToolOutput::parts(vec![other.clone()]).to_text()),
    }
}

/// Restores the parts of a server's answer that the content shows in another form.
fn restore(output: &ToolOutput, content: &mut [ContentBlock]) {
    let kept = output.metadata(PARTS).and_then(Value::as_array);
    for kept in kept.into_iter().flatten() {
        let at = kept["at"].as_u64().and_then(|at| usize::try_from(at).ok());
        let place = at.and_then(|at| content.get_mut(at));
        if let (Some(place), Ok(part)) = (place, serde_json::from_value(kept["part"].clone())) {
            *place = part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;
    use serde_json::json;
    use std::time::Duration;
    use toolyard::Call;

    /// The names of our parts of `_meta` that clients know.
    const CALL: &str = "toolyard/call";
    const ERROR: &str = "toolyard/error";

    fn written(status: Result<ToolOutput, CallError>) -> Value {
        let outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::Read, status);
        serde_json::to_value(write(outcome, true).unwrap()).unwrap()
    }

    /// V5: images, data and parts of other servers' answers are passed on unchanged.
    #[test]
    fn nothing_of_an_output_is_lost() {
        let link = json!({"type": "resource_link", "uri": "file:///y", "name": "y"});
        let picture = Content::Image { media_type: "image/png".into(), data: "AA==".into() };
        let output = ToolOutput::parts(vec![Content::text("[resource y]"), Content::text("a"), picture])
            .with_structured(json!({"n": 1}))
            .with_metadata(PARTS, vec![json!({"at": 0, "part": link}), json!({"at": 9, "part": link})]);
        let result = written(Ok(output));
        let picture = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        assert_eq!(result["content"], json!([link, {"type": "text", "text": "a"}, picture]));
        assert_eq!(result["structuredContent"], json!({"n": 1}));
        let call = json!({"attempts": 1, "dedupe": "fresh", "queued_ms": 0, "ran_ms": 0, "duration_ms": 0,
                          "sandbox": "host"});
        assert_eq!((&result["isError"], &result["_meta"]), (&json!(false), &json!({ CALL: call })));
    }

    /// Data that is not an object is sent as text, which every client reads.
    #[test]
    fn data_that_is_no_object_goes_as_text() {
        let result = written(Ok(ToolOutput::json(json!([1, 2]))));
        assert_eq!(result["content"], json!([{"type": "text", "text": "[1,2]"}]));
        assert!(result.get("structuredContent").is_none());
    }

    /// V4, V5, SM-11: a failure is a result that the model reads, with the code for machines beside it.
    #[test]
    fn a_failure_is_a_result_with_details() {
        let mut error = CallError::new(ErrorKind::CircuitOpen, "open");
        error.retry_after = Some(Duration::from_millis(1500));
        let result = written(Err(error));
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().unwrap().starts_with("open\n"));
        let expect = json!({"code": "circuit_open", "outcome": "not_started", "attempts": 0, "retryable": true,
                            "retry_after_ms": 1500});
        assert_eq!(result["_meta"][ERROR], expect);
        assert_eq!(result["_meta"][CALL]["attempts"], 0);
        let read = ResultMeta::read_shared(result["_meta"].as_object().unwrap()).unwrap().unwrap();
        assert_eq!(read.failure().map(|failure| failure.code), Some(ErrorKind::CircuitOpen));
    }

    /// V5: the output of a tool that reports failure is passed on unchanged, between what the engine adds.
    #[test]
    fn nothing_of_a_failure_is_lost() {
        let link = json!({"type": "resource_link", "uri": "file:///y", "name": "y"});
        let output = ToolOutput::parts(vec![Content::text("no"), Content::text("[resource y]")])
            .with_structured(json!({"n": 1}))
            .with_metadata(PARTS, vec![json!({"at": 1, "part": link})]);
        let text = |text: &str| json!({"type": "text", "text": text});
        let error = CallError::new(ErrorKind::ExecutionError, "no").with_output(output.clone());
        let result = written(Err(error));
        assert_eq!(result["content"], json!([text("no"), link]));
        assert_eq!((&result["structuredContent"], &result["isError"]), (&json!({"n": 1}), &json!(true)));
        let error = CallError::new(ErrorKind::Timeout, "too late").with_output(output).with_advice("Look.");
        let result = written(Err(error));
        assert_eq!(result["content"], json!([text("too late"), text("no"), link, text("Look.")]));
    }

    /// V4: an unknown tool is a protocol error, as MCP requires.
    #[test]
    fn an_unknown_tool_is_a_protocol_error() {
        let error = CallError::new(ErrorKind::NotFound, "Tool 't' not found. Available: []");
        let outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::ShortCircuit, Err(error));
        let error = write(outcome, true).unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert_eq!(error.data.unwrap()[ERROR]["code"], "not_found");
    }
}
