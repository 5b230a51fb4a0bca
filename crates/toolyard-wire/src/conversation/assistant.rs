//! Rebuilds the model's message from its calls and the text beside them.

use crate::{Format, Message, encode::Answer, found::Text};
use serde_json::{Map, Value, json};
use toolyard_core::{Arguments, CallTimeout};

/// The extra fields of a Gemini call that stand in the call itself; the others stand in the part around it.
const IN_FUNCTION_CALL: [&str; 2] = ["willContinue", "partialArgs"];

pub(super) fn messages(message: &Message, to: Format) -> Vec<Value> {
    let calls = crate::encode::answers(message, &[], to);
    let each = |write: fn(&Answer<'_>) -> Value| calls.iter().map(write).collect::<Vec<_>>();
    match to {
        Format::Neutral => vec![batch(message, each(neutral))],
        Format::OpenAiChat => {
            vec![json!({"role": "assistant", "content": content(message), "tool_calls": each(tool_call)})]
        }
        Format::OpenAiResponses => in_order(message, to, each(item)),
        Format::Anthropic => {
            vec![json!({"role": "assistant", "content": in_order(message, to, each(tool_use))})]
        }
        Format::Gemini => vec![json!({"role": "model", "parts": in_order(message, to, each(part))})],
    }
}

fn batch(message: &Message, calls: Vec<Value>) -> Value {
    let mut batch = json!({ "calls": calls });
    let text = message.text();
    if !text.trim().is_empty() {
        batch["text"] = text.into();
    }
    batch
}

/// The content of a Chat message: what it was, or the text as one string.
fn content(message: &Message) -> Value {
    match message.texts() {
        [text] if message.format() == Format::OpenAiChat && !is_blank(text) => text.wire.clone(),
        _ => Some(message.text()).filter(|text| !text.trim().is_empty()).into(),
    }
}

/// The calls with the texts where they stood among them.
fn in_order(message: &Message, to: Format, calls: Vec<Value>) -> Vec<Value> {
    let same_format = message.format() == to;
    // A part that is empty but for a signature goes back too; elsewhere blank text is refused.
    let signed = |text: &Text| same_format && text.wire.get("thoughtSignature").is_some();
    let mut texts = message.texts().iter().filter(|text| signed(text) || !is_blank(text)).peekable();
    let write = |text: &Text| if same_format { text.wire.clone() } else { plain(&text.plain(), to) };
    let mut all = Vec::with_capacity(calls.len());
    for (at, call) in calls.into_iter().enumerate() {
        while let Some(text) = texts.next_if(|text| text.calls_before <= at) {
            all.push(write(text));
        }
        all.push(call);
    }
    all.extend(texts.map(write));
    all
}

fn is_blank(text: &Text) -> bool {
    text.plain().trim().is_empty()
}

/// A text that came in another format.
fn plain(text: &str, to: Format) -> Value {
    match to {
        Format::OpenAiResponses => json!({"type": "message", "role": "assistant", "content": text}),
        Format::Anthropic => json!({"type": "text", "text": text}),
        Format::Gemini => json!({ "text": text }),
        // These write their text as one string.
        Format::Neutral | Format::OpenAiChat => text.into(),
    }
}

fn tool_call(call: &Answer<'_>) -> Value {
    let name = call.origin.name.as_ref();
    let fields = match custom_input(call) {
        Some(input) => {
            let custom = json!({"name": name, "input": input});
            json!({"id": call.id(), "type": "custom", "custom": custom})
        }
        None => {
            let function = json!({"name": name, "arguments": call.call.arguments.to_string()});
            json!({"id": call.id(), "type": "function", "function": function})
        }
    };
    with_passthrough(fields, call)
}

fn item(call: &Answer<'_>) -> Value {
    let mut item = Map::new();
    let mut put = |key: &str, value: &str| item.insert(key.to_owned(), value.into());
    let custom = custom_input(call);
    put("type", if custom.is_some() { "custom_tool_call" } else { "function_call" });
    if let Some(id) = call.provider_id() {
        put("id", id);
    }
    put("call_id", call.id());
    put("name", &call.origin.name);
    match custom {
        Some(input) => put("input", input),
        None => put("arguments", &call.call.arguments.to_string()),
    };
    with_passthrough(Value::Object(item), call)
}

fn tool_use(call: &Answer<'_>) -> Value {
    let (id, name) = (call.id(), call.origin.name.as_ref());
    with_passthrough(
        json!({"type": "tool_use", "id": id, "name": name, "input": call.call.arguments.to_value()}),
        call,
    )
}

fn part(call: &Answer<'_>) -> Value {
    let mut function = json!({"name": call.origin.name.as_ref(), "args": call.call.arguments.to_value()});
    // Some versions of the API refuse an id that the model did not send.
    if let Some(id) = call.original_id() {
        function["id"] = id.into();
    }
    for key in IN_FUNCTION_CALL {
        if let Some(value) = call.echo(key) {
            function[key] = value.clone();
        }
    }
    let mut part = with_passthrough(json!({ "functionCall": function }), call);
    if let Value::Object(fields) = &mut part {
        fields.retain(|key, _| !IN_FUNCTION_CALL.contains(&key.as_str()));
    }
    part
}

fn neutral(answer: &Answer<'_>) -> Value {
    let call = answer.call;
    let mut fields = json!({"call_id": answer.id(), "name": call.name.as_ref()});
    if let Some(id) = &call.provider_id {
        fields["provider_id"] = id.as_ref().into();
    }
    fields["arguments"] = match &call.arguments {
        Arguments::Text(text) => text.as_ref().into(),
        Arguments::Json(value) => value.as_ref().clone(),
    };
    if let Some(key) = &call.idempotency_key {
        fields["idempotency_key"] = key.as_ref().into();
    }
    if let Some(timeout) = call.timeout.map(CallTimeout::duration) {
        fields["timeout_ms"] = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into();
    }
    if let Some(rest) = &call.passthrough {
        fields["passthrough"] = Value::Object(Map::clone(rest));
    }
    fields
}

/// The free text with which a custom tool was called; `None` for a call of any other tool.
fn custom_input<'a>(call: &Answer<'a>) -> Option<&'a str> {
    match &call.call.arguments {
        Arguments::Json(value) if call.origin.custom => value.get("input")?.as_str(),
        _ => None,
    }
}

/// Adds the fields that came with the call, if it goes back in the same format.
fn with_passthrough(mut value: Value, call: &Answer<'_>) -> Value {
    if let (Value::Object(fields), Some(passthrough)) = (&mut value, call.passthrough()) {
        for (key, field) in passthrough {
            fields.entry(key.as_str()).or_insert_with(|| field.clone());
        }
    }
    value
}
