use super::*;
use crate::SseDecoder;
use serde_json::json;
use std::time::Duration;
use toolyard_core::CallTimeout;

/// Checks the calls of a text, as `[id, name, arguments as received]`.
#[track_caller]
fn check(text: &str, expect: &[(&str, &str, &str)]) -> Message {
    let message = decode(text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found: Vec<_> = message
        .calls()
        .iter()
        .map(|call| (call.id.to_string(), call.name.to_string(), call.arguments.to_string()))
        .collect();
    let found: Vec<_> = found.iter().map(|(id, name, args)| (&**id, &**name, &**args)).collect();
    assert_eq!(found, expect, "{text}");
    message
}

#[track_caller]
fn fails(text: &str, expect: &str) {
    assert_eq!(decode(text, None).unwrap_err().to_string(), expect, "{text}");
}

#[test]
fn chat_takes_a_response_a_message_a_list_and_one_call() {
    let call = r#"{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}"#;
    for text in [
        format!(r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}}}}]}}"#),
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#),
        format!("[{call}]"),
        call.to_owned(),
    ] {
        check(&text, &[("c1", "f", r#"{"x": 1}"#)]);
    }
}

#[test]
fn responses_takes_a_response_an_output_and_one_item() {
    let item = r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}"#;
    for text in [
        format!(r#"{{"object":"response","error":null,"output":[{{"type":"reasoning"}},{item}]}}"#),
        format!("[{item}]"),
        item.to_owned(),
    ] {
        let message = check(&text, &[("c1", "f", "{}")]);
        assert_eq!(message.calls()[0].provider_id.as_deref(), Some("fc_1"));
    }
}

#[test]
fn anthropic_takes_a_message_a_list_and_one_block() {
    let block = r#"{"type":"tool_use","id":"t1","name":"f","input":{"x":1}}"#;
    for text in [
        format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"text","text":"hm"}},{block}]}}"#
        ),
        format!("[{block}]"),
        block.to_owned(),
    ] {
        check(&text, &[("t1", "f", r#"{"x":1}"#)]);
    }
}

#[test]
fn gemini_takes_a_response_a_content_a_list_and_one_part_in_either_spelling() {
    for key in ["functionCall", "function_call"] {
        let part = format!(r#"{{"{key}":{{"name":"f","args":{{"x":1}},"id":"g1"}}}}"#);
        for text in [
            format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}}}}]}}"#),
            format!(r#"{{"role":"model","parts":[{{"text":"hm"}},{part}]}}"#),
            format!("[{part}]"),
            part.clone(),
        ] {
            check(&text, &[("g1", "f", r#"{"x":1}"#)]);
        }
    }
}

#[test]
fn neutral_takes_a_batch_a_list_and_one_call() {
    let call = r#"{"call_id":"c1","provider_id":"p","name":"f","arguments":{"x":1},
        "idempotency_key":"k","timeout_ms":1500,"colour":"red"}"#;
    for text in [format!(r#"{{"calls":[{call}]}}"#), format!("[{call}]"), call.to_owned()] {
        let message = check(&text, &[("c1", "f", r#"{"x":1}"#)]);
        let call = &message.calls()[0];
        assert_eq!(call.provider_id.as_deref(), Some("p"));
        assert_eq!(call.idempotency_key.as_deref(), Some("k"));
        assert_eq!(call.timeout.map(CallTimeout::duration), Some(Duration::from_millis(1500)));
        assert_eq!(call.passthrough.as_ref().unwrap()["colour"], "red");
    }
}

/// ID-2, V3: an invalid key or timeout in a readable call is that call's own fault, which the engine reports.
#[test]
fn keys_and_limits_of_a_neutral_call_go_to_the_engine_as_they_are() {
    let odd = ["", "a b", "\u{7}", &"k".repeat(256)];
    for key in odd {
        let text = json!({"calls": [{"name": "f", "idempotency_key": key, "timeout_ms": 0}]}).to_string();
        let call = &decode(&text, None).unwrap().into_calls()[0];
        let timeout = call.timeout.map(CallTimeout::duration);
        assert_eq!((call.idempotency_key.as_deref(), timeout), (Some(key), Some(Duration::ZERO)));
    }
    let nulls = r#"{"calls":[{"name":"f","idempotency_key":null,"timeout_ms":null}]}"#;
    let call = &decode(nulls, None).unwrap().into_calls()[0];
    assert_eq!((&call.idempotency_key, call.timeout, &call.passthrough), (&None, None, &None));
}

#[test]
fn arguments_that_are_missing_null_or_empty_text_are_an_empty_object() {
    for arguments in ["", r#","arguments":null"#, r#","arguments":"""#] {
        check(&format!(r#"{{"calls":[{{"call_id":"c","name":"f"{arguments}}}]}}"#), &[("c", "f", "{}")]);
    }
    check(r#"[{"type":"tool_use","id":"c","name":"f"}]"#, &[("c", "f", "{}")]);
    check(r#"[{"functionCall":{"name":"f","args":null,"id":"c"}}]"#, &[("c", "f", "{}")]);
}

#[test]
fn broken_arguments_stay_text_and_are_no_error() {
    let text = r#"{"role":"assistant","tool_calls":[
        {"id":"a","function":{"name":"f","arguments":"{\"x\":"}},
        {"id":"b","function":{"name":"f","arguments":" "}},
        {"id":"c","function":{"name":"f","arguments":"hello"}},
        {"id":"d","function":{"name":"f","arguments":{"x":1}}}]}"#;
    check(text, &[("a", "f", "{\"x\":"), ("b", "f", " "), ("c", "f", "hello"), ("d", "f", "{\"x\":1}")]);
}

#[test]
fn arguments_that_nest_deeper_than_the_parser_goes_stay_text() {
    let deep = "[".repeat(100_000);
    let text = json!({"calls": [{"call_id": "c", "name": "f", "arguments": deep}]}).to_string();
    check(&text, &[("c", "f", &deep)]);
}

#[test]
fn a_missing_id_is_generated_and_never_one_that_arrived() {
    let text = r#"[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g","id":"call_1"}},
        {"functionCall":{"name":"h","id":""}}]"#;
    check(text, &[("call_2", "f", "{}"), ("call_1", "g", "{}"), ("call_3", "h", "{}")]);
}

/// A result has to name the id in the provider's own message, even one that the model left empty; for the engine such
/// calls have ids of their own.
#[test]
fn an_empty_id_is_kept_for_the_result_and_replaced_for_the_engine() {
    let texts = [
        r#"{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f"}},{"id":"","function":{"name":"g"}}]}"#,
        r#"[{"type":"function_call","call_id":"","name":"f"},{"type":"function_call","call_id":"","name":"g"}]"#,
        r#"[{"type":"tool_use","id":"","name":"f"},{"type":"tool_use","id":"","name":"g"}]"#,
        r#"{"calls":[{"call_id":"","name":"f"},{"call_id":"","name":"g"}]}"#,
    ];
    for text in texts {
        let message = check(text, &[("call_1", "f", "{}"), ("call_2", "g", "{}")]);
        assert_eq!(message.origins()[1].id.as_deref(), Some(""), "{text}");
    }
}

#[test]
fn equal_ids_and_missing_names_are_kept() {
    let text = r#"[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a"}]"#;
    check(text, &[("a", "f", "{}"), ("a", "", "{}")]);
}

#[test]
fn the_input_of_a_custom_tool_becomes_its_argument_input() {
    let text = r#"[{"type":"custom_tool_call","id":"i","call_id":"c","name":"sql","input":"select 1"}]"#;
    check(text, &[("c", "sql", r#"{"input":"select 1"}"#)]);
    let text = r#"[{"type":"custom","id":"c","custom":{"name":"sql","input":"select 1"}}]"#;
    check(text, &[("c", "sql", r#"{"input":"select 1"}"#)]);
}

#[test]
fn tools_that_the_provider_runs_are_passed_over() {
    check(r#"[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]"#, &[]);
    check(r#"[{"type":"mcp_tool_use","id":"s","name":"x","input":{}},{"type":"text","text":"."}]"#, &[]);
    check(r#"{"output":[{"type":"web_search_call","id":"w"},{"type":"mcp_call","name":"x"}]}"#, &[]);
}

#[test]
fn fields_that_are_not_ours_stay_with_the_call() {
    let text = r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"completed",
        "namespace":"crm","caller":{"type":"program","caller_id":"p"}}]"#;
    let message = check(text, &[("c", "f", "{}")]);
    let rest = message.calls()[0].passthrough.as_deref().unwrap();
    assert_eq!(rest.keys().collect::<Vec<_>>(), ["status", "namespace", "caller"]);

    let message =
        check(r#"[{"type":"tool_use","id":"t","name":"f","toolset_name":"browser"}]"#, &[("t", "f", "{}")]);
    assert_eq!(message.calls()[0].passthrough.as_ref().unwrap()["toolset_name"], "browser");

    let message =
        check(r#"[{"functionCall":{"name":"f"},"thoughtSignature":"sig"}]"#, &[("call_1", "f", "{}")]);
    assert_eq!(message.calls()[0].passthrough.as_ref().unwrap()["thoughtSignature"], "sig");
}

#[test]
fn a_response_without_tool_calls_is_an_empty_message() {
    for text in [
        r#"{"choices":[{"message":{"role":"assistant","content":"hi"}}]}"#,
        r#"{"choices":[]}"#,
        r#"{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}]}"#,
        r#"{"candidates":[{"finishReason":"STOP"}]}"#,
        r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
        r#"{"calls":[]}"#,
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n",
    ] {
        assert!(check(text, &[]).is_empty());
    }
}

#[test]
fn a_call_cut_off_by_the_token_limit_does_not_run_as_if_it_had_no_arguments() {
    let text = r#"{"choices":[{"finish_reason":"length","message":{"role":"assistant","tool_calls":[
        {"id":"a","function":{"name":"f","arguments":""}},{"id":"b","function":{"name":"f","arguments":""}}]}}]}"#;
    check(text, &[("a", "f", "{}"), ("b", "f", "")]);
    let text = r#"{"choices":[{"finish_reason":"length","message":{"role":"assistant","tool_calls":[
        {"id":"a","function":{"name":"f"}}]}}]}"#;
    check(text, &[("a", "f", "")]);
    let text = r#"{"role":"assistant","stop_reason":"max_tokens","content":[
        {"type":"tool_use","id":"t","name":"write","input":{"text":"half"}}]}"#;
    check(text, &[("t", "write", r#"{"text":"half""#)]);
    let text = r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"","status":"incomplete"}]"#;
    check(text, &[("c", "f", "")]);
}

#[test]
fn a_stream_that_came_as_a_json_array_is_read() {
    let text = r#"[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]},
        {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}]"#;
    check(text, &[("call_1", "f", "{}")]);
}

#[test]
fn sse_with_crlf_comments_and_data_in_lines_is_read() {
    let text = ": hi\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"finish_reason\":\"tool_calls\",\"delta\":\r\n\
        data: {\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n\
        data: [DONE]\r\n\r\n";
    check(text, &[("c", "f", "{}")]);
}

#[test]
fn what_cannot_be_read_says_where_and_what_to_do() {
    fails(" \n", "the input is empty: expected a provider's response as JSON or as SSE text");
    fails("{\"a\" 1}", "not JSON: expected `:` at line 1 column 6");
    fails(
        "{\"calls\":[",
        "the JSON ends too early, at line 1 column 10: the response was cut off, fetch it again",
    );
    fails("{\"calls\":{}}", "calls: expected an array, found an object");
    fails("{\"calls\":[{\"name\":\"f\"},7]}", "calls[1]: expected an object, found a number");
    fails(
        "{\"calls\":[{\"name\":\"f\",\"timeout_ms\":\"2s\"}]}",
        "calls[0].timeout_ms: expected a whole number of milliseconds, found a string",
    );
    let written = r#"{"calls":[{"name":"f","timeout_ms":1e3}]}"#;
    assert_eq!(
        decode(written, None).unwrap().calls()[0].timeout,
        Some(CallTimeout::of_attempt(Duration::from_secs(1)))
    );
    for (wrong, found) in [("-1", "a number"), ("1.5", "a number"), ("true", "a boolean")] {
        let wanted = "calls[0].timeout_ms: expected a whole number of milliseconds";
        fails(
            &format!("{{\"calls\":[{{\"name\":\"f\",\"timeout_ms\":{wrong}}}]}}"),
            &format!("{wanted}, found {found}"),
        );
    }
    fails(
        "{\"calls\":[{\"name\":\"f\",\"idempotency_key\":7}]}",
        "calls[0].idempotency_key: expected a string, found a number",
    );
    fails(
        "{\"choices\":[{\"message\":{\"tool_calls\":[null]}}]}",
        "choices[0].message.tool_calls[0]: expected an object, found null",
    );
    fails(
        "{\"error\":{\"code\":429,\"message\":\"quota exceeded\"}}",
        "the provider returned an error: quota exceeded",
    );
    fails(
        "data: {\"choices\":[]}\n\ndata: {\"choices\"}\n\n",
        "event 2 of the stream: not JSON: expected `:` at line 1 column 11",
    );
}

#[test]
fn an_event_that_is_broken_and_not_cut_off_is_an_error_whatever_came_before() {
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#;
    let cut = format!("data: {call}\n\ndata: {{\"cand");
    let message = check(&cut, &[("call_1", "f", "{}")]);
    assert!(message.is_cut());
    fails(
        &format!("{cut}\n\ndata: {call}\n\n"),
        "event 2 of the stream: the JSON ends too early, at line 1 column 6: the response was cut off, fetch it \
         again",
    );
}

#[test]
fn a_format_that_does_not_fit_is_named() {
    let error = decode(r#"{"choices":[]}"#, Some(Format::Gemini)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this is not a gemini response: found an object with the keys choices; name the right format with --from, \
         or omit it"
    );
}

#[test]
fn a_body_beyond_the_bound_is_refused() {
    let text = " ".repeat(crate::bounds::BODY_BYTES_MAX + 1);
    assert!(matches!(decode(&text, None), Err(DecodeError::TooLarge { .. })));
}

/// Whatever format is expected: no answer arrived, as opposed to an answer without calls.
#[test]
fn blank_input_is_an_error_in_every_format() {
    let formats = Format::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        for text in ["", " \n\t\r\n", "\u{feff}", "\u{feff} \n"] {
            assert_eq!(decode(text, format), Err(DecodeError::Empty), "{format:?} {text:?}");
        }
    }
    for format in Format::ALL {
        for text in [": ping\n\n", "data:\n\ndata: \n\n", "event: x\n\n"] {
            assert_eq!(decode(text, Some(format)), Err(DecodeError::Empty), "{format} {text:?}");
            let mut pieces = SseDecoder::new(Some(format));
            pieces.push(text.as_bytes()).unwrap();
            assert_eq!(pieces.finish(), Err(DecodeError::Empty), "{format} {text:?}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    check("\u{feff}{\"calls\":[{\"call_id\":\"c\",\"name\":\"f\"}]}", &[("c", "f", "{}")]);
}
