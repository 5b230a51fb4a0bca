use super::*;
use crate::{Episode, Format, Message, StreamDecoder, decode};
use proptest::prelude::*;
use serde_json::Value;
use toolyard_core::{Arguments, Call};

/// An object of this many levels.
fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

/// Arguments that are JSON but cannot be represented.
fn unrepresentable() -> Vec<String> {
    let words = [
        r#"{"x":1e400}"#,
        r#"{"x":-1e999999}"#,
        r#"{"x":"\ud800"}"#,
        r#"{"x":"\ud800\u0041"}"#,
        r#"{"x":"\udc00"}"#,
        r#"{"\ud800":"é, \" } ] \\"}"#,
        r#"{"x":[1, {"y": [1e400]}],"input":{"arguments":{"args":1}}}"#,
    ];
    words.map(str::to_owned).into_iter().chain([nested(100_000)]).collect()
}

/// A call of this format.
fn call(format: Format, id: &str, arguments: &str) -> String {
    match format {
        Format::Neutral => format!(r#"{{"call_id":"{id}","name":"f","arguments" : {arguments}}}"#),
        Format::Anthropic => {
            format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{arguments}}}"#)
        }
        Format::Gemini => format!(r#"{{"functionCall":{{"id":"{id}","name":"f","args":{arguments}}}}}"#),
        Format::OpenAiResponses => {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":{arguments}}}"#)
        }
        Format::OpenAiChat => {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#)
        }
    }
}

/// A response of this format with three calls, of which the second has these arguments.
fn response(format: Format, arguments: &str) -> String {
    let [first, last] = [("a", r#"{"n":1}"#), ("c", r#"{"n":2}"#)].map(|(id, args)| call(format, id, args));
    let calls = format!("{first},{},\n {last}", call(format, "b", arguments));
    match format {
        Format::Neutral => format!(r#"{{"calls":[{calls}]}}"#),
        Format::Anthropic => {
            let said = r#"{"type":"text","text":"\"input\": 1e400 \\"}"#;
            format!(r#"{{"type":"message","role":"assistant","content":[{said},{calls}]}}"#)
        }
        Format::Gemini => {
            format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{calls}]}}}}]}}"#)
        }
        Format::OpenAiResponses => format!(r#"{{"object":"response","output":[{calls}]}}"#),
        Format::OpenAiChat => format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#),
    }
}

fn json(text: &str) -> Arguments {
    serde_json::from_str::<Value>(text).unwrap().into()
}

/// Checks that of three calls only the second has its arguments as this raw text.
#[track_caller]
fn check(calls: &[Call], raw: &str) {
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(calls[0].arguments, json(r#"{"n":1}"#));
    assert!(calls[1].arguments == Arguments::Text(raw.into()), "{:.200}", calls[1].arguments.to_string());
    assert_eq!(calls[2].arguments, json(r#"{"n":2}"#));
}

fn read(text: &str) -> Message {
    decode(text, None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn arguments_that_cannot_be_held_cost_their_own_call_alone() {
    for format in Format::ALL {
        for arguments in unrepresentable() {
            check(read(&response(format, &arguments)).calls(), &arguments);
        }
    }
}

#[test]
fn each_of_several_calls_is_rescued() {
    let bad = response(Format::Neutral, "1e400").replace(r#"{"n":2}"#, r#"["\udfff"]"#);
    let message = read(&bad);
    let arguments: Vec<_> = message.calls().iter().map(|call| call.arguments.to_string()).collect();
    assert_eq!(arguments, [r#"{"n":1}"#, "1e400", r#"["\udfff"]"#]);
}

#[test]
fn arguments_too_deep_only_where_they_stand_are_whole_as_text() {
    for format in Format::ALL {
        for levels in 115..=127 {
            let arguments = nested(levels);
            let message = read(&response(format, &arguments));
            assert_eq!(message.calls()[1].arguments.to_value(), json(&arguments).to_value());
            assert_eq!(message.calls()[2].arguments, json(r#"{"n":2}"#));
        }
    }
}

#[test]
fn text_with_half_a_surrogate_pair_fails_at_its_call() {
    let raw = r#""{\"x\":\"\ud800\"}""#;
    check(read(&response(Format::OpenAiChat, raw)).calls(), raw);
}

#[test]
fn the_free_text_of_a_custom_tool_is_never_made_of_a_broken_one() {
    let item = r#"[{"type":"custom_tool_call","call_id":"c","name":"f","input":"\ud800"}]"#;
    assert!(matches!(decode(item, None), Err(DecodeError::NotJson { .. })));
}

#[test]
fn events_and_episodes_are_rescued_alike() {
    for format in [Format::Neutral, Format::Gemini] {
        let text = response(format, r#"{"x":1e400}"#).replace('\n', "");
        check(read_stream(format, &text).calls(), r#"{"x":1e400}"#);
        let sse = decode(&format!("data: {text}\n\n"), Some(format)).unwrap();
        check(sse.calls(), r#"{"x":1e400}"#);
    }
    let calls = ["a", "b", "c"].into_iter().zip([r#"{"n":1}"#, "1e400", r#"{"n":2}"#]);
    let calls: Vec<_> = calls.map(|(id, args)| call(Format::Neutral, id, args)).collect();
    let episode = Episode::parse_line(&format!(r#"{{"id":"e","turns":[[{}]]}}"#, calls.join(",")));
    check(&episode.unwrap().turns[0], "1e400");
}

fn read_stream(format: Format, event: &str) -> Message {
    let mut stream = StreamDecoder::new(format);
    assert_eq!(stream.push(event).unwrap().len(), 3);
    stream.into_message()
}

#[test]
fn only_values_of_the_keys_are_quoted() {
    let quoted = |text, expect: Option<&str>| assert_eq!(rescue(text).as_deref(), expect, "{text}");
    quoted(r#"{"input":1e400}"#, Some(r#"{"input":"1e400"}"#));
    quoted(r#"{"x":{"args" : [1e400] }}"#, Some(r#"{"x":{"args" : "[1e400]" }}"#));
    quoted(r#"{"x":1e400}"#, None);
    quoted(r#"["input",1e400]"#, None);
    quoted(r#"{"x":"\"input\":1e400"}"#, None);
    quoted(r#"{"x\"input":1e400}"#, None);
    quoted(r#"{"input":{"input":1},"x":1e400}"#, None);
    quoted(
        r#"{"input":{"args":1e400},"args":{"input":1}}"#,
        Some(r#"{"input":"{\"args\":1e400}","args":{"input":1}}"#),
    );
}

#[test]
fn what_is_not_json_is_not_made_json() {
    for text in [
        r#"{"input":}"#,
        r#"{"input":nonsense}"#,
        r#"{"input":{"x":nonsense}}"#,
        r#"{"input":1e400"#,
        r#"{"input":{"x":1e400}"#,
        r#"{"input":{"x":[1e400}]}"#,
        r#"{"input":"1e400"#,
        r#"{"input":1e400}}"#,
        r#"{"input":1e400}"\"#,
        r#"{"input"#,
        r#"{"input":"#,
        "]",
        "",
    ] {
        assert_eq!(rescue(text), None, "{text}");
    }
}

#[test]
fn a_text_that_cannot_be_rescued_keeps_its_error() {
    let whole = response(Format::Anthropic, "{}");
    let cut = decode(&whole[..whole.len() - 1], None);
    assert!(matches!(cut, Err(DecodeError::Truncated { .. })), "{cut:?}");
    let whole = response(Format::Anthropic, &nested(100_000));
    let cut = decode(&whole[..whole.len() - 1], None);
    assert!(matches!(cut, Err(DecodeError::TooDeep { .. })), "{cut:?}");
    let elsewhere = decode(r#"{"calls":[{"name":"f","arguments":1e400}],"x":1e400}"#, None);
    assert!(elsewhere.unwrap_err().to_string().ends_with("number out of range at line 1 column 39"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_cut_anywhere_is_refused_and_nothing_panics(
        format in prop::sample::select(Format::ALL.to_vec()),
        arguments in prop::sample::select(vec![nested(200), r#"{"é\"":"\ud800","x":[1e400]}"#.to_owned()]),
        cut: prop::sample::Index,
    ) {
        let text = response(format, &arguments);
        let at = text.floor_char_boundary(cut.index(text.len()));
        prop_assert!(rescue(&text[..at]).is_none());
        prop_assert!(decode(&text[..at], Some(format)).is_err());
    }

    #[test]
    fn arbitrary_brackets_and_strings_never_panic(text in r#"([\[\]{}:,"\\ é1]|"input":|1e400){0,40}"#) {
        if let Some(rescued) = rescue(&text) {
            prop_assert!(rescued.len() > text.len());
        }
    }
}
