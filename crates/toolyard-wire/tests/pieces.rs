//! SSE text may arrive in any pieces: the calls are those of the whole text (CL-5).

#![expect(clippy::unwrap_used, reason = "a text that cannot be read is a failed test")]

use proptest::{collection::vec, prelude::*, sample::Index, sample::select};
use toolyard_core::Call;
use toolyard_wire::{DecodeError, Format, Message, SseDecoder, SseSplitter, decode, sse_events};

/// Events that a stream may contain, valid and invalid.
const EVENTS: &[&str] = &[
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#,
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}"#,
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":\"é木\"}"}}"#,
    r#"data: {"type":"content_block_stop","index":0}"#,
    r#"data: {"type":"content_block_stop","index":1}"#,
    r#"data: {"type":"ping"}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}}]}"#,
    r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"z":"\u00e9"}}}]}}]}"#,
    r#"data: {"type":"error","error":{"message":"Overloaded"}}"#,
    r#"data: {"hello":1}"#,
    "data: [DONE]",
    "data: {",
    "data",
    ": a comment é",
    "event: ping",
    "id: 7\nretry: 9",
    "",
];

prop_compose! {
    /// A text of such events, most of them with their blank line, perhaps broken off.
    fn text()(
        mark in select(vec!["", "\u{feff}", "\n"]),
        events in vec((select(EVENTS), select(vec!["\n\n", "\n\n", "\r\n\r\n", "\r\r", "\r\n\n", "\n"])), 0..12),
        broken in any::<bool>(),
        end in any::<Index>(),
    ) -> String {
        let text: String = events.into_iter().map(|(event, end)| format!("{event}{end}")).collect();
        let text = format!("{mark}data:\n{text}");
        let mut end = if broken { end.index(text.len()).max(mark.len() + 5) } else { text.len() };
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text[..end].to_owned()
    }
}

/// Cuts the text at these places.
fn cut<'a>(text: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

/// Every call as it was returned, and the final result of the stream.
fn read(pieces: &[&[u8]], format: Option<Format>) -> (Vec<Call>, Result<Message, DecodeError>) {
    let mut stream = SseDecoder::new(format);
    let mut calls = Vec::new();
    let mut end = Ok(());
    for piece in pieces {
        let pushed = stream.push(piece);
        end = end.and(pushed);
        calls.extend(stream.take_calls());
    }
    let finished = stream.finish();
    calls.extend(stream.take_calls());
    let message = end.and(finished).map(|()| stream.into_message().unwrap());
    (calls, message)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_pieces_give_the_events_of_the_whole(text in text(), places in vec(any::<Index>(), 0..20)) {
        let mut splitter = SseSplitter::default();
        let mut found = Vec::new();
        for mut piece in cut(text.as_bytes(), &places) {
            while let Some(event) = splitter.read(&mut piece).unwrap() {
                found.push((event.event.to_owned(), event.data.into_owned(), event.ended));
            }
        }
        let last = splitter.finish().unwrap();
        found.extend(last.map(|event| (event.event.to_owned(), event.data.into_owned(), event.ended)));
        let whole = sse_events(&text).map(|event| (event.event.to_owned(), event.data.into_owned(), event.ended));
        prop_assert_eq!(found, whole.collect::<Vec<_>>());
    }

    /// CL-5: an error is the same too, and the calls that came before it are still returned.
    #[test]
    fn any_pieces_give_the_calls_of_the_whole(
        text in text(),
        places in vec(any::<Index>(), 0..20),
        format in select(vec![None, Some(Format::Anthropic), Some(Format::OpenAiChat)]),
    ) {
        let (calls, message) = read(&cut(text.as_bytes(), &places), format);
        prop_assert_eq!(&message, &decode(&text, format));
        let (of_whole, _) = read(&[text.as_bytes()], format);
        prop_assert_eq!(&calls, &of_whole);
        if let Ok(message) = message {
            prop_assert_eq!(calls, message.into_calls());
        }
    }
}

/// CL-5: a text that ends inside a character breaks off there, and no earlier call is lost.
#[test]
fn a_text_may_end_inside_a_character() {
    let start =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}"#;
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"x\":\"木"#;
    let text = format!("data: {start}\n\ndata: {delta}");
    let (calls, message) = read(&[&text.as_bytes()[..text.len() - 1]], None);
    assert!(message.unwrap().is_cut());
    assert_eq!((calls.len(), calls[0].arguments.to_string().as_str()), (1, ""));
}

/// CL-5: calls that came before a provider's error stay, and an incomplete call keeps its text.
#[test]
fn an_error_leaves_the_calls_before_it() {
    let text: String = [0, 3, 1, 10].iter().map(|at| format!("{}\n\n", EVENTS[*at])).collect();
    let (calls, message) = read(&[text.as_bytes()], None);
    assert!(matches!(message, Err(DecodeError::Provider { .. })));
    let shown: Vec<String> = calls.iter().map(|call| format!("{} '{}'", call.id, call.arguments)).collect();
    assert_eq!(shown, ["a '{}'", "b ''"]);
}
