//! No input causes a panic, and text survives being sent in fragments.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use toolyard_wire::{Episode, Format, NameMap, NameRule, StreamDecoder, decode, detect, encode, sse_events};

fn read_in_every_way(text: &str) {
    let _ = detect(text);
    let _ = Episode::parse_line(text);
    let _ = sse_events(text).count();
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        if let Ok(message) = decode(text, format) {
            for to in Format::ALL {
                encode(&message, &[], to);
            }
        }
        let mut stream = StreamDecoder::new(format.unwrap_or(Format::Neutral));
        let _ = stream.push(text);
        let _ = stream.push(text);
        stream.finish();
    }
}

/// Words that the decoders look for, so that random values get past the first checks.
const KEYS: &[&str] = &[
    "choices",
    "message",
    "delta",
    "tool_calls",
    "function",
    "custom",
    "index",
    "id",
    "name",
    "arguments",
    "finish_reason",
    "output",
    "type",
    "call_id",
    "input",
    "item",
    "output_index",
    "response",
    "content",
    "content_block",
    "partial_json",
    "stop_reason",
    "candidates",
    "parts",
    "functionCall",
    "args",
    "partialArgs",
    "willContinue",
    "jsonPath",
    "stringValue",
    "calls",
    "timeout_ms",
    "passthrough",
    "turns",
    "tools",
    "error",
    "role",
    "idempotency_key",
    "status",
];
const TEXTS: &[&str] = &[
    "",
    "{}",
    "{",
    "function",
    "custom",
    "function_call",
    "custom_tool_call",
    "tool_use",
    "length",
    "max_tokens",
    "incomplete",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.failed",
    "$.a[0].b",
    "$[",
    "call_1",
    "é",
    "\u{0}",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..3).prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((select(KEYS), inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, v)| (key.to_owned(), v)).collect()
            )),
        ]
    })
}

/// The events that send `arguments` in these fragments.
fn fragments(format: Format, pieces: &[String]) -> Vec<Value> {
    let (begin, end) = match format {
        Format::OpenAiChat => (
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
        ),
        _ => (
            json!({"type": "content_block_start", "index": 0,
                   "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}}),
            json!({"type": "content_block_stop", "index": 0}),
        ),
    };
    let piece = |piece: &String| match format {
        Format::OpenAiChat => {
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]})
        }
        _ => json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": piece}}),
    };
    let pieces = pieces.iter().map(piece);
    std::iter::once(begin).chain(pieces).chain([end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes: Vec<u8>) {
        read_in_every_way(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_lines_of_sse_are_read_or_refused(text in "(data|event|:|id)?(: ?)?[\\PC\\r\\n]{0,40}") {
        read_in_every_way(&text);
    }

    #[test]
    fn values_of_almost_the_right_shape_are_read_or_refused(value in value()) {
        let text = value.to_string();
        read_in_every_way(&text);
        read_in_every_way(&format!("data: {text}\n\n"));
    }

    #[test]
    fn fragments_join_to_the_text_they_were_cut_from(
        pieces in prop::collection::vec("\\PC{0,8}", 0..12),
        format in select(vec![Format::OpenAiChat, Format::Anthropic]),
    ) {
        let text = pieces.concat();
        let mut stream = StreamDecoder::new(format);
        let mut calls = Vec::new();
        for event in fragments(format, &pieces) {
            calls.extend(stream.push(&event.to_string()).unwrap());
        }
        prop_assert!(stream.finish().is_empty());
        prop_assert_eq!(calls.len(), 1);
        let expect = if text.is_empty() { "{}".to_owned() } else { text };
        prop_assert_eq!(calls[0].arguments.to_string(), expect);
    }

    #[test]
    fn mapped_names_are_allowed_unique_and_find_their_way_back(
        names in prop::collection::hash_set("[a-c.:é/_-]{1,4}|[x.]{62,70}", 0..30),
        rule in select(vec![NameRule::Plain, NameRule::Dotted]),
    ) {
        let map = NameMap::new(rule, names.iter().map(String::as_str));
        for name in &names {
            prop_assert!(rule.allows(map.wire(name)));
            prop_assert_eq!(map.original(map.wire(name)), Some(name.as_str()));
        }
    }
}
