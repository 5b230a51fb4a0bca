use super::*;

/// Plays events and records the calls that each completed: `.` for none, otherwise `id name arguments`. The calls
/// that were still open at the end follow after `|`.
#[track_caller]
fn check(format: Format, events: &[&str], expect: &str) {
    let mut stream = StreamDecoder::new(format);
    let mut found: Vec<String> = Vec::new();
    for event in events {
        let calls = stream.push(event).unwrap_or_else(|error| panic!("{error}\n{event}"));
        found.push(show(&calls));
    }
    let rest = stream.finish();
    if !rest.is_empty() {
        found.push("|".to_owned());
        found.push(show(&rest));
    }
    assert_eq!(found.join(" "), expect);
    assert_eq!(stream.message().is_cut(), !rest.is_empty());
}

fn show(calls: &[Call]) -> String {
    let show = |call: &Call| format!("{} {} {}", call.id, call.name, call.arguments);
    let shown: Vec<String> = calls.iter().map(show).collect();
    if shown.is_empty() { ".".to_owned() } else { shown.join(", ") }
}

/// An event of a Chat stream with these fragments.
fn delta(fragments: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{fragments}]}}}}]}}"#)
}

fn chat(fragments: &[&str], end: &str, expect: &str) {
    let mut events: Vec<String> = fragments.iter().map(|fragment| delta(fragment)).collect();
    if !end.is_empty() {
        events.push(end.to_owned());
    }
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    check(Format::OpenAiChat, &events, expect);
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

#[test]
fn chat_joins_fragments_by_index() {
    let fragments = [
        r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
        r#"{"index":0,"function":{"arguments":":1}"}}"#,
    ];
    chat(&fragments, STOP, r#". . . a f {"x":1}"#);
}

#[test]
fn chat_gives_a_whole_call_when_the_next_begins() {
    let fragments = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
    ];
    chat(&fragments, STOP, ". a f {} b g {}");
    chat(&fragments, "[DONE]", ". a f {} b g {}");
}

#[test]
fn chat_waits_with_a_call_whose_arguments_may_go_on() {
    let fragments = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
        r#"{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}"#,
    ];
    chat(&fragments, STOP, ". . a f {}, b g {}");
}

#[test]
fn chat_takes_another_id_under_the_same_index_for_another_call() {
    let fragments = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        r#"{"id":"c","function":{"name":"h","arguments":"{}"}}"#,
    ];
    chat(&fragments, STOP, ". a f {} b g {} c h {}");
}

#[test]
fn chat_keeps_white_space_of_a_call_that_shares_its_index_with_the_one_before() {
    let fragments = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{\"x\":\"a"}}"#,
        r#"{"index":0,"function":{"arguments":" "}}"#,
        r#"{"index":0,"function":{"arguments":"b\"}"}}"#,
    ];
    chat(&fragments, STOP, r#". a f {} . . b g {"x":"a b"}"#);
}

#[test]
fn chat_passes_over_blank_fragments_of_a_call_that_was_given_out() {
    let fragments = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        r#"{"index":0,"function":{"arguments":" "}}"#,
    ];
    chat(&fragments, STOP, ". a f {} . b g {}");
}

#[test]
fn a_call_that_begins_anew_before_it_ended_is_there_twice() {
    let start = |id: &str| {
        format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"{id}","name":"f"}}}}"#
        )
    };
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    check(Format::Anthropic, &[&start("a"), &start("b"), stop], ". a f  b f {}");
}

/// Two answers in one stream: blocks of both have the same indexes, so nothing after that can be told apart.
#[test]
fn a_second_message_start_inside_an_open_message_is_an_error() {
    let (start, stop) = (r#"{"type":"message_start","message":{}}"#, r#"{"type":"message_stop"}"#);
    let block =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}"#;
    let mut stream = StreamDecoder::new(Format::Anthropic);
    stream.push(start).unwrap();
    stream.push(block).unwrap();
    assert_eq!(stream.push(start), Err(DecodeError::SecondMessage));
    assert_eq!(show(&stream.finish()), "a f ");
    check(Format::Anthropic, &[start, stop, start, stop], ". . . .");
    let text = format!("data: {start}\n\ndata: {start}\n\n");
    assert_eq!(
        crate::decode(&text, None).unwrap_err().to_string(),
        "event 2 of the stream: a second message starts before the first has stopped: send one response at a time"
    );
}

/// Some servers send an empty id with every fragment but the first, and some with that one, too.
#[test]
fn chat_keeps_an_empty_id_only_if_there_is_no_other() {
    let fragment = |id: &str, name: &str| {
        delta(&format!(r#"{{"index":0,"id":"{id}","function":{{"name":"{name}","arguments":"{{}}"}}}}"#))
    };
    let id_of = |events: &[String]| {
        let mut stream = StreamDecoder::new(Format::OpenAiChat);
        events.iter().for_each(|event| drop(stream.push(event).unwrap()));
        stream.push(STOP).unwrap();
        stream.message().origins()[0].id.clone()
    };
    assert_eq!(id_of(&[fragment("a", "f"), fragment("", "")]).as_deref(), Some("a"));
    assert_eq!(id_of(&[fragment("", "f"), fragment("", "")]).as_deref(), Some(""));
}

#[test]
fn an_event_of_another_format_is_refused() {
    let error = StreamDecoder::new(Format::Anthropic).push(STOP).unwrap_err();
    assert!(matches!(error, DecodeError::WrongFormat { .. }), "{error}");
}

#[test]
fn chat_without_ids_and_indexes_still_tells_whole_calls_apart() {
    let whole = r#"{"function":{"name":"f","arguments":"{}"}}"#;
    chat(&[whole, whole], STOP, ". call_1 f {} call_2 f {}");
}

#[test]
fn chat_that_breaks_off_gives_the_half_call_with_its_half_arguments() {
    chat(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#], "", r#". | a f {"x":"#);
    // Arguments that were never sent are not `{}`.
    chat(&[r#"{"index":0,"id":"a","function":{"name":"f"}}"#], "", ". | a f ");
}

#[test]
fn chat_that_runs_out_of_tokens_cuts_its_last_call() {
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
    let mut stream = StreamDecoder::new(Format::OpenAiChat);
    stream.push(&delta(r#"{"index":0,"id":"a","function":{"name":"f"}}"#)).unwrap();
    assert_eq!(show(&stream.push(end).unwrap()), "a f ");
}

#[test]
fn chat_gathers_the_free_text_of_a_custom_tool() {
    let fragments = [
        r#"{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"select "}}"#,
        r#"{"index":0,"custom":{"input":"1"}}"#,
    ];
    chat(&fragments, STOP, r#". . a sql {"input":"select 1"}"#);
    chat(&fragments, "", r#". . | a sql {"input":"select 1""#);
}

#[test]
fn anthropic_gives_each_call_at_its_end() {
    let events = [
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s","name":"web"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}"#,
    ];
    check(Format::Anthropic, &events, r#". . . a f {"x":1} . . . . | b g "#);
}

#[test]
fn responses_gives_each_item_when_it_is_done() {
    let events = [
        r#"{"type":"response.created","response":{}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":"}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"j","call_id":"b","name":"g","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"y\":"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":"{\"x\":1}"}}"#,
    ];
    check(Format::OpenAiResponses, &events, r#". . . . . a f {"x":1} | b g {"y":"#);
}

#[test]
fn responses_that_sends_no_items_on_the_way_is_read_from_its_end() {
    let events = [
        r#"{"type":"response.completed","response":{"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}}"#,
    ];
    check(Format::OpenAiResponses, &events, "a f {}");
}

#[test]
fn gemini_that_breaks_off_gives_the_half_call_with_arguments_that_do_not_parse() {
    let piece =
        |call: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{call}}}]}}}}]}}"#);
    let begin = piece(r#"{"name":"f","willContinue":true}"#);
    let more = piece(
        r#"{"partialArgs":[{"jsonPath":"$.x","stringValue":"he","willContinue":true}],"willContinue":true}"#,
    );
    check(Format::Gemini, &[&begin, &more], r#". . | call_1 f {"x":"he""#);
    check(Format::Gemini, &[&begin], ". | call_1 f {");
    check(Format::Gemini, &[&begin, &more, &piece("{}")], r#". . call_1 f {"x":"he"}"#);
    // No call is open, so none ends; a call without a name still counts as a call.
    check(Format::Gemini, &[&piece("{}"), &piece(r#"{"args":{}}"#)], ". call_1  {}");
}

#[test]
fn an_id_that_the_provider_sends_after_it_was_made_goes_back_all_the_same() {
    let mut stream = StreamDecoder::new(Format::Neutral);
    stream.push(r#"{"name":"f"}"#).unwrap();
    let calls = stream.push(r#"{"call_id":"call_1","name":"g"}"#).unwrap();
    assert_eq!(calls[0].id.as_str(), "call_2");
    let results = crate::encode(stream.message(), &[], Format::OpenAiChat);
    assert_eq!(results[1]["tool_call_id"], "call_1");
}

#[test]
fn an_error_of_the_provider_leaves_the_calls_before_it() {
    let mut stream = StreamDecoder::new(Format::Anthropic);
    let start =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}"#;
    stream.push(start).unwrap();
    let error = stream.push(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert!(matches!(error, Err(DecodeError::Provider { .. })));
    assert_eq!(show(&stream.finish()), "a f ");
}

#[test]
fn an_index_beyond_its_bound_is_refused() {
    let mut stream = StreamDecoder::new(Format::OpenAiChat);
    let error = stream.push(&delta(r#"{"index":4294967296,"id":"a"}"#)).unwrap_err();
    assert_eq!(error.to_string(), "choices[0].delta.tool_calls[].index: index 4294967296 is above 65535");
}

#[test]
fn a_stream_beyond_its_bound_is_refused() {
    let mut stream = StreamDecoder::new(Format::OpenAiChat);
    let blank = " ".repeat(BODY_BYTES_MAX);
    assert!(stream.push(&blank).is_ok());
    assert!(matches!(stream.push(" "), Err(DecodeError::TooLarge { .. })));
}

/// The model's message as it goes back, of a stream of these events.
fn sent_back(format: Format, events: &[&str]) -> serde_json::Value {
    let mut stream = StreamDecoder::new(format);
    for event in events {
        stream.push(event).unwrap();
    }
    stream.finish();
    let message = stream.into_message();
    let outcomes: Vec<_> = message
        .calls()
        .iter()
        .map(|call| {
            toolyard_core::Outcome::new(
                call,
                toolyard_core::Routing::Read,
                Ok(toolyard_core::ToolOutput::text("done")),
            )
        })
        .collect();
    crate::build_tool_result_messages(&message, &outcomes, format).unwrap().assistant.into()
}

#[test]
fn text_beside_the_calls_is_joined_and_keeps_its_place() {
    let chat = [
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"content":"I "}}]}"#,
        r#"{"choices":[{"delta":{"content":"look."}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[{"delta":{"content":" Now."}}]}"#,
    ];
    let sent = sent_back(Format::OpenAiChat, &chat);
    assert_eq!(sent[0]["content"], "I look. Now.");
    assert_eq!(sent[0]["tool_calls"][0]["id"], "c");

    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"look."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"And th"}}"#,
    ];
    assert_eq!(
        sent_back(Format::Anthropic, &anthropic)[0]["content"],
        serde_json::json!([
            {"type": "text", "text": "I look.", "citations": [{"cited_text": "x"}]},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}},
            {"type": "text", "text": "And th"},
        ])
    );

    let gemini = [
        r#"{"candidates":[{"content":{"parts":[{"text":"I "}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"look."}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}},{"text":"Now."}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"}]}}]}"#,
    ];
    assert_eq!(
        sent_back(Format::Gemini, &gemini)[0]["parts"],
        serde_json::json!([
            {"text": "I look."},
            {"functionCall": {"name": "f", "args": {}}},
            {"text": "Now."},
            {"text": "", "thoughtSignature": "s"},
        ])
    );
}

/// A message item goes back as it was when it was done; one that breaks off has the text so far.
#[test]
fn responses_keeps_the_text_beside_its_calls() {
    let item = r#"{"type":"message","id":"m1","role":"assistant","status":"completed",
        "content":[{"type":"output_text","text":"I look.","annotations":[]}]}"#;
    let call = r#"{"type":"function_call","id":"f1","call_id":"c","name":"f","arguments":"{}"}"#;
    let done = |at: u8, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
    };
    let ended = format!(r#"{{"type":"response.completed","response":{{"output":[{item},{call}]}}}}"#);
    let whole: serde_json::Value = serde_json::from_str(&format!("[{item},{call}]")).unwrap();
    for events in [vec![&ended], vec![&done(0, item), &done(1, call), &ended], vec![&done(0, item), &ended]] {
        let events: Vec<&str> = events.into_iter().map(String::as_str).collect();
        assert_eq!(sent_back(Format::OpenAiResponses, &events), whole, "{events:?}");
    }
    let added = r#"{"type":"response.output_item.added","output_index":1,
        "item":{"type":"message","id":"m2","role":"assistant","status":"in_progress","content":[]}}"#;
    let delta =
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"And th"}"#;
    let sent = sent_back(Format::OpenAiResponses, &[&done(0, call), added, delta]);
    assert_eq!(sent[1]["content"][0]["text"], "And th");
    assert_eq!(sent[1]["status"], "incomplete");
}
