use super::*;
use crate::decode;
use serde_json::json;
use toolyard_core::{Arguments, Call, CallError, ErrorKind, Routing, ToolOutput};

const CHAT: &str = r#"{"role":"assistant","tool_calls":[
    {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1 }"},"extra":{"sig":"s"}},
    {"id":"c2","type":"function","function":{"name":"f","arguments":"{\"broken"}},
    {"id":"c3","type":"custom","custom":{"name":"sql","input":"select 1"}}]}"#;
const RESPONSES: &str = r#"[
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed",
     "caller":{"type":"direct"}},
    {"type":"custom_tool_call","id":"ct_1","call_id":"c2","name":"sql","input":"select 1"}]"#;
const ANTHROPIC: &str = r#"{"role":"assistant","content":[
    {"type":"tool_use","id":"t1","name":"f","input":{"x":1}},
    {"type":"tool_use","id":"t2","name":"click","input":{},"toolset_name":"browser"}]}"#;
const GEMINI: &str = r#"{"role":"model","parts":[
    {"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"abc"},
    {"functionCall":{"id":"g2","name":"f","args":{},"willContinue":false}}]}"#;
const NEUTRAL: &str = r#"{"calls":[
    {"call_id":"c1","provider_id":"p","name":"f","arguments":{"x":1},"idempotency_key":"k","timeout_ms":5,"colour":"red"},
    {"call_id":"c2","name":"f","arguments":"{broken"}]}"#;

const SAMPLES: [(Format, &str); 5] = [
    (Format::OpenAiChat, CHAT),
    (Format::OpenAiResponses, RESPONSES),
    (Format::Anthropic, ANTHROPIC),
    (Format::Gemini, GEMINI),
    (Format::Neutral, NEUTRAL),
];

/// An outcome per call: the first succeeded, the others failed.
fn outcomes(message: &Message) -> Vec<Outcome> {
    let outcome = |(at, call): (usize, &Call)| {
        let error = CallError::new(ErrorKind::Timeout, "Tool exceeded 5s wall time limit");
        let status = if at == 0 { Ok(ToolOutput::text("done")) } else { Err(error) };
        Outcome::new(call, Routing::Read, status)
    };
    message.calls().iter().enumerate().map(outcome).collect()
}

/// The model's message as a text that a decoder reads.
fn assistant_text(messages: &ToolMessages, format: Format) -> String {
    match format {
        Format::OpenAiResponses => json!(messages.assistant).to_string(),
        _ => messages.assistant[0].to_string(),
    }
}

#[test]
fn the_assistant_message_gives_the_same_calls_again() {
    for (format, text) in SAMPLES {
        let message = decode(text, Some(format)).unwrap();
        let messages = build_tool_result_messages(&message, &outcomes(&message), format).unwrap();
        let again = decode(&assistant_text(&messages, format), None).unwrap();
        assert_eq!(again, message, "{format}");
    }
}

#[test]
fn the_tool_messages_are_what_encode_gives() {
    for (from, text) in SAMPLES {
        let message = decode(text, Some(from)).unwrap();
        let outcomes = outcomes(&message);
        let takes = |to: &Format| build_tool_result_messages(&message, &outcomes, *to).is_ok();
        for to in Format::ALL.into_iter().filter(takes) {
            let messages = build_tool_result_messages(&message, &outcomes, to).unwrap();
            let encoded = encode(&message, &outcomes, to);
            let one = if encoded.is_array() { json!(messages.tool) } else { messages.tool[0].clone() };
            assert_eq!(one, encoded, "{from} to {to}");
        }
    }
}

#[test]
fn another_format_gets_the_calls_and_none_of_the_first_one_s_fields() {
    let message = decode(GEMINI, None).unwrap();
    let outcomes = outcomes(&message);
    for to in Format::ALL.into_iter().filter(|to| *to != Format::Gemini) {
        let messages = build_tool_result_messages(&message, &outcomes, to).unwrap();
        let text = assistant_text(&messages, to);
        assert!(to == Format::Neutral || !text.contains("abc"), "{text}");
        let again = decode(&text, Some(to)).unwrap();
        let summary = |message: &Message| -> Vec<_> {
            let call = |call: &Call| (call.id.clone(), call.name.clone(), call.arguments.to_value());
            message.calls().iter().map(call).collect()
        };
        assert_eq!(summary(&again), summary(&message), "{to}");
    }
}

#[test]
fn what_the_model_wrote_stays_as_it_was() {
    let of = |text| {
        let message = decode(text, None).unwrap();
        build_tool_result_messages(&message, &outcomes(&message), message.format()).unwrap()
    };
    assert_eq!(of(GEMINI).assistant, [serde_json::from_str::<Value>(GEMINI).unwrap()]);
    assert_eq!(of(ANTHROPIC).assistant, [serde_json::from_str::<Value>(ANTHROPIC).unwrap()]);
    assert_eq!(json!(of(RESPONSES).assistant), serde_json::from_str::<Value>(RESPONSES).unwrap());
    let calls = of(CHAT).assistant[0]["tool_calls"].take();
    assert_eq!(calls, serde_json::from_str::<Value>(CHAT).unwrap()["tool_calls"]);
}

/// Both messages are ours here, so both have an id that every provider accepts, and each call has its own.
#[test]
fn an_empty_id_is_replaced_in_the_call_and_in_its_result() {
    let text = r#"{"role":"assistant","content":[
        {"type":"tool_use","id":"","name":"f","input":{}},{"type":"tool_use","id":"","name":"f","input":{}}]}"#;
    let message = decode(text, None).unwrap();
    let messages = build_tool_result_messages(&message, &outcomes(&message), Format::Anthropic).unwrap();
    for (at, id) in ["call_1", "call_2"].into_iter().enumerate() {
        assert_eq!(messages.assistant[0]["content"][at]["id"], id);
        assert_eq!(messages.tool[0]["content"][at]["tool_use_id"], id);
    }
}

/// What the model says before, between and after its calls.
const TALK: [(Format, &str); 5] = [
    (
        Format::OpenAiChat,
        r#"{"role":"assistant","content":"First.","tool_calls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
    ),
    (
        Format::OpenAiResponses,
        r#"[{"type":"message","id":"m1","role":"assistant","status":"completed","phase":"commentary",
             "content":[{"type":"output_text","text":"First.","annotations":[]}]},
            {"type":"function_call","id":"f1","call_id":"c1","name":"f","arguments":"{}"},
            {"type":"message","id":"m2","role":"assistant","content":[{"type":"refusal","refusal":"No more."}]},
            {"type":"function_call","id":"f2","call_id":"c2","name":"f","arguments":"{}"}]"#,
    ),
    (
        Format::Anthropic,
        r#"{"role":"assistant","content":[
            {"type":"text","text":"First.","citations":[{"type":"page_location"}]},
            {"type":"tool_use","id":"c1","name":"f","input":{}},
            {"type":"text","text":"Then."},{"type":"text","text":" Go."},
            {"type":"tool_use","id":"c2","name":"f","input":{}},
            {"type":"text","text":"Last."}]}"#,
    ),
    (
        Format::Gemini,
        r#"{"role":"model","parts":[
            {"text":"First.","thoughtSignature":"s"},
            {"functionCall":{"id":"c1","name":"f","args":{}}},
            {"text":"","thoughtSignature":"t"}]}"#,
    ),
    (Format::Neutral, r#"{"calls":[{"call_id":"c1","name":"f","arguments":{}}],"text":"First."}"#),
];

fn build(message: &Message, to: Format) -> ToolMessages {
    build_tool_result_messages(message, &outcomes(message), to).unwrap()
}

#[test]
fn text_beside_the_calls_goes_back_as_it_was_and_where_it_stood() {
    for (format, text) in TALK {
        let message = decode(text, None).unwrap();
        let assistant = build(&message, format).assistant;
        let same = if format == Format::OpenAiResponses { json!(assistant) } else { assistant[0].clone() };
        assert_eq!(same, serde_json::from_str::<Value>(text).unwrap(), "{format}");
        assert!(message.text().starts_with("First."), "{format}");
    }
}

#[test]
fn text_beside_the_calls_reaches_every_other_format() {
    let message = decode(TALK[2].1, None).unwrap();
    assert_eq!(message.text(), "First.\n\nThen. Go.\n\nLast.");
    let text = |text: &str| json!({"type": "message", "role": "assistant", "content": text});
    let items = build(&message, Format::OpenAiResponses).assistant;
    assert_eq!((&items[0], &items[2], &items[5]), (&text("First."), &text("Then."), &text("Last.")));
    assert_eq!(items[4]["call_id"], "c2");
    let parts = &build(&message, Format::Gemini).assistant[0]["parts"];
    assert_eq!((&parts[0], &parts[3]), (&json!({"text": "First."}), &json!({"text": " Go."})));
    for (format, key) in [(Format::OpenAiChat, "content"), (Format::Neutral, "text")] {
        assert_eq!(build(&message, format).assistant[0][key], message.text(), "{format}");
    }
    let responses = decode(TALK[1].1, None).unwrap();
    let blocks = &build(&responses, Format::Anthropic).assistant[0]["content"];
    assert_eq!(blocks[2], json!({"type": "text", "text": "No more."}));
    for (from, text) in TALK {
        let message = decode(text, None).unwrap();
        for to in Format::ALL {
            let again = decode(&assistant_text(&build(&message, to), to), Some(to)).unwrap();
            let words = |message: &Message| message.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&again), words(&message), "{from} to {to}");
        }
    }
}

/// Reasoning is not the model's own text, and blank text is what providers refuse.
#[test]
fn reasoning_and_blank_text_stay_away() {
    for text in [
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"f"}}]}"#,
        r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
            {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]"#,
        r#"{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":" \n"},
            {"type":"tool_use","id":"c1","name":"f","input":{}}]}"#,
        r#"{"parts":[{"text":"hm","thought":true},{"text":""},{"functionCall":{"name":"f"}}]}"#,
        r#"{"calls":[{"call_id":"c1","name":"f"}],"text":" "}"#,
    ] {
        let message = decode(text, None).unwrap();
        assert_eq!(message.text().trim(), "", "{text}");
        for to in Format::ALL {
            let assistant = build(&message, to).assistant;
            assert_eq!(assistant.len(), 1, "{text}");
            let entries = ["content", "parts"].iter().find_map(|key| assistant[0][*key].as_array());
            assert!(entries.is_none_or(|entries| entries.len() == 1), "{text}: {assistant:?}");
            assert!(to == Format::Anthropic || assistant[0]["content"].is_null(), "{text}: {assistant:?}");
            assert_eq!(assistant[0].get("text"), None, "{text}");
        }
    }
}

#[test]
fn no_calls_are_no_messages() {
    let message = Message::new(Format::Anthropic, Vec::new());
    let messages = build_tool_result_messages(&message, &[], Format::Anthropic).unwrap();
    assert_eq!(messages.into_messages(), Vec::<Value>::new());
}

#[test]
fn what_does_not_fit_is_refused() {
    let call = |id: &str, name: &str| Call::new(id, name, json!({}));
    let outcome = |call: &Call| Outcome::new(call, Routing::Read, Ok(ToolOutput::text("x")));
    let check = |calls: &[Call], of: &[Call], expect: &str| {
        let message = Message::new(Format::Anthropic, calls.to_vec());
        let outcomes: Vec<Outcome> = of.iter().map(outcome).collect();
        let error = build_tool_result_messages(&message, &outcomes, Format::Anthropic).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    let (a, b) = (call("a", "f"), call("b", "f"));
    let count = "2 calls but 1 outcomes: pass one outcome per call, in call order";
    check(&[a.clone(), b.clone()], std::slice::from_ref(&a), count);
    let swapped = "the outcome at position 0 is for call 'b', but the call there is 'a'";
    check(&[a.clone(), b.clone()], &[b, a.clone()], swapped);
    let other = "the outcome at position 0 is for tool 'g', but the call there is for 'f'";
    check(std::slice::from_ref(&a), &[call("a", "g")], other);
    let twice = "the call at position 1 reuses the id 'a'";
    check(&[a.clone(), a.clone()], &[a.clone(), a], twice);
    let broken = Call::new("a", "f", Arguments::from("{broken"));
    let no_object = "the arguments of call 'a' are not a JSON object, which anthropic requires";
    check(std::slice::from_ref(&broken), std::slice::from_ref(&broken), no_object);
}
