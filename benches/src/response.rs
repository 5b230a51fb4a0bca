//! Model responses as providers write them, with any number of calls.

use serde_json::{Value, json};
use std::fmt::Write as _;
use toolyard_wire::Format;

/// The tool that the calls name.
const TOOL: &str = "nothing";

/// A response with this many calls, as one JSON text.
pub(crate) fn whole(format: Format, calls: usize) -> String {
    let each = |one: fn(usize) -> Value| (0..calls).map(one).collect::<Vec<_>>();
    let response = match format {
        Format::Neutral => {
            json!({"calls": each(|n| json!({"call_id": id(n), "name": TOOL, "arguments": args(n)}))})
        }
        Format::OpenAiChat => json!({"object": "chat.completion", "choices": [{"index": 0, "message": {
            "role": "assistant", "content": null, "tool_calls": each(|n| json!({
                "id": id(n), "type": "function", "function": {"name": TOOL, "arguments": args(n).to_string()}}))}}]}),
        Format::OpenAiResponses => json!({"object": "response", "output": each(|n| json!({
            "type": "function_call", "id": format!("fc_{n}"), "call_id": id(n), "name": TOOL,
            "arguments": args(n).to_string(), "status": "completed"}))}),
        Format::Anthropic => json!({"type": "message", "role": "assistant", "content": each(|n| json!({
            "type": "tool_use", "id": id(n), "name": TOOL, "input": args(n)}))}),
        Format::Gemini => json!({"candidates": [{"content": {"role": "model", "parts": each(|n| json!({
            "functionCall": {"name": TOOL, "args": args(n)}}))}}]}),
    };
    response.to_string()
}

/// The same as a stream of server-sent events, with arguments in three fragments. For OpenAI Chat and Anthropic only.
pub(crate) fn stream(format: Format, calls: usize) -> String {
    let mut text = String::new();
    let mut event = |data: Value| {
        let kind = data["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
        let _ = write!(text, "{kind}data: {data}\n\n");
    };
    for n in 0..calls {
        let arguments = args(n).to_string();
        let (head, rest) = arguments.split_at(4);
        let (middle, tail) = rest.split_at(rest.len() / 2);
        let fragments = [head, middle, tail];
        match format {
            Format::Anthropic => {
                let block = json!({"type": "tool_use", "id": id(n), "name": TOOL, "input": {}});
                event(json!({"type": "content_block_start", "index": n, "content_block": block}));
                for fragment in fragments {
                    let delta = json!({"type": "input_json_delta", "partial_json": fragment});
                    event(json!({"type": "content_block_delta", "index": n, "delta": delta}));
                }
                event(json!({"type": "content_block_stop", "index": n}));
            }
            _ => {
                let named = json!({"index": n, "id": id(n), "type": "function", "function": {"name": TOOL, "arguments": ""}});
                event(chunk(named));
                for fragment in fragments {
                    event(chunk(json!({"index": n, "function": {"arguments": fragment}})));
                }
            }
        }
    }
    text.push_str(match format {
        Format::Anthropic => "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        _ => "data: [DONE]\n\n",
    });
    text
}

fn chunk(call: Value) -> Value {
    let delta = json!({"tool_calls": [call]});
    json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]})
}

fn id(n: usize) -> String {
    format!("call_{n}")
}

/// The arguments of a call with some text in it: about 120 bytes.
fn args(n: usize) -> Value {
    json!({"n": n, "path": "src/engine/router.rs", "query": "a line of \"text\" that a model would look for\nand another"})
}
