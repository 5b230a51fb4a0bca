use super::*;
use proptest::prelude::*;
use std::time::Duration;

/// Why a line is refused, with the call that it names.
fn refused(line: &str) -> (String, Option<String>) {
    let refused = ask(line.as_bytes()).unwrap_err();
    (refused.message, refused.tool_call_id.map(|id| id.to_string()))
}

/// AG-1: a call is read exactly as it is specified, and its arguments stay as they were written.
#[test]
fn a_call_is_read_as_it_stands() {
    let line = r#"{"op":"tool_call","tool_call_id":"c1","tool":"Read","args":{"path": "/a", "n":1.0}}"#;
    let Ok(Ask::Calls(calls)) = ask(line.as_bytes()) else { panic!() };
    let [Ok(AskedCall { call, after: None, wrong: None })] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((call.id.as_str(), call.name.as_ref()), ("c1", "Read"));
    assert_eq!(call.arguments.text(), r#"{"path": "/a", "n":1.0}"#);
}

/// AG-1: a text is the same whether or not something in it is escaped, and its bound is that of the text.
#[test]
fn a_text_may_be_escaped() {
    let plain = r#"{"op":"tool_call","tool_call_id":"ü\"","tool":"Read","args":{}}"#;
    let escaped = r#"{"op":"tool\u005fcall","tool_call_id":"\u00fc\"","tool":"R\u0065ad","args":{}}"#;
    assert_eq!(ask(plain.as_bytes()).unwrap(), ask(escaped.as_bytes()).unwrap());
    let long = "\\u0061".repeat(100);
    assert!(ask(format!(r#"{{"op":"cancel","tool_call_id":"{long}"}}"#).as_bytes()).is_ok());
    for (id, why) in
        [("7", "field 'tool_call_id' must be a string"), ("null", "field 'tool_call_id' must be a string")]
    {
        let line = format!(r#"{{"op":"cancel","tool_call_id":{id}}}"#);
        assert_eq!(refused(&line), (why.to_owned(), None));
    }
}

/// AG-1, SM-11: what goes with a call is read, and what an agent may not set is refused.
#[test]
fn meta_of_a_call_is_read() {
    let line = |meta: &str| {
        format!(r#"{{"op":"tool_call","tool_call_id":"c","tool":"t","args":{{}},"meta":{meta}}}"#)
    };
    let Ok(Ask::Calls(calls)) = ask(line(r#"{"idempotency_key":"k","deadline_ms":5}"#).as_bytes()) else {
        panic!()
    };
    let call = &calls[0].as_ref().unwrap().call;
    assert_eq!(call.idempotency_key.as_deref(), Some("k"));
    assert_eq!(call.deadline, Some(Duration::from_millis(5)));
    for (meta, why) in [
        (r#"{"agent":"root/x"}"#, "field 'meta.agent' cannot be set by an agent"),
        (r#"{"call_id":"x"}"#, "field 'meta.call_id' cannot be set by an agent"),
        (r#"{"idempotency":"k"}"#, "'idempotency'"),
        ("7", "meta"),
    ] {
        let Ok(Ask::Calls(calls)) = ask(line(meta).as_bytes()) else { panic!() };
        let wrong = calls[0].as_ref().unwrap().wrong.as_deref().unwrap();
        assert!(wrong.contains(why), "{wrong}");
        // What an agent may not set is not offered.
        assert!(
            !wrong.contains("there are")
                || wrong.ends_with("there are idempotency_key, timeout_ms, deadline_ms"),
            "{wrong}"
        );
    }
}

/// AG-2: a line that is not understood is refused by name, with its call if that can be read.
#[test]
fn what_is_wrong_is_said() {
    let check = |line: &str, why: &str, id: Option<&str>| {
        let (message, named) = refused(line);
        assert!(message.contains(why), "{line}: {message}");
        assert_eq!(named.as_deref(), id, "{line}");
    };
    check("", "one JSON object", None);
    check("[1]", "one JSON object", None);
    check("{", "no JSON object", None);
    check("{} {}", "no JSON object", None);
    check(r#"{"op":"bye","op":"bye"}"#, "duplicate field", None);
    check("{}", "field 'op' is missing", None);
    check(r#"{"op":7,"tool_call_id":"c"}"#, "field 'op' must be a string", Some("c"));
    check(r#"{"op":"tool_call"}"#, "field 'tool_call_id' is missing", None);
    check(r#"{"op":"tool_call","tool_call_id":""}"#, "1 to 1024 bytes", None);
    check(r#"{"op":"tool_call","tool_call_id":"c"}"#, "field 'tool' is missing", Some("c"));
    check(r#"{"op":"tool_call","tool_call_id":"c","tool":"t"}"#, "field 'args' is missing", Some("c"));
    check(r#"{"op":"tool_calls","calls":{}}"#, "'calls' must be a list", None);
    check(r#"{"op":"hello"}"#, "field 'protocol' is missing", None);
    check(r#"{"op":"hello","protocol":2}"#, "protocol 2 is not spoken here; 1 is", None);
    check(r#"{"op":"hello","protocol":1,"meta":1}"#, "field 'meta' must be true or false", None);
    check(r#"{"op":"a\nb"}"#, r"there is no operation 'a\nb'", None);
    let message = ask(b"{\"op\":\"\xff\"}").unwrap_err().message;
    assert_eq!(message, "byte 8 of the line is not UTF-8");
}

/// AG-2: a call that is whole is answered, also if what it waits for makes no sense; null is as if it were left out.
#[test]
fn a_whole_call_is_taken() {
    let asked = |rest: &str| {
        let line = format!(r#"{{"op":"tool_call","tool_call_id":"c","tool":"t","args":1{rest}}}"#);
        let Ok(Ask::Calls(mut calls)) = ask(line.as_bytes()) else { panic!() };
        calls.remove(0).unwrap()
    };
    assert_eq!(
        asked(r#","after":"x""#).wrong.as_deref(),
        Some("field 'after' must be a list of ids of calls")
    );
    assert_eq!((asked(r#","after":null,"meta":null"#).after, asked(r#","meta":null"#).wrong), (None, None));
    assert_eq!(asked(r#","after":[]"#).after, Some(vec![]));
}

/// AG-2: of several calls in one line, each is taken or refused by itself; too many are refused together.
#[test]
fn calls_of_one_line_stand_for_themselves() {
    let line =
        r#"{"op":"tool_calls","calls":[{"tool_call_id":"a","tool":"t","args":{}},{"tool_call_id":"b"},7]}"#;
    let Ok(Ask::Calls(calls)) = ask(line.as_bytes()) else { panic!() };
    assert!(calls[0].is_ok());
    assert_eq!(calls[1].as_ref().unwrap_err().tool_call_id.as_ref().map(CallId::as_str), Some("b"));
    assert!(calls[2].is_err());
    let many = format!(r#"{{"op":"tool_calls","calls":[{}7]}}"#, "7,".repeat(CALLS_OF_A_LINE_MAX));
    assert!(refused(&many).0.contains("1001 entries"));
}

/// AG-2: fields that are not known are ignored, and null is a value.
#[test]
fn unknown_fields_are_ignored() {
    let hello = ask(br#"{"op":"hello","protocol":1,"deltas":true,"colour":"red"}"#);
    assert_eq!(hello, Ok(Ask::Hello(Hello { meta: false, deltas: true })));
    assert_eq!(ask(br#"{"op":"bye"}"#), Ok(Ask::Bye(None)));
    assert_eq!(ask(br#"{"op":"bye","result":null}"#), Ok(Ask::Bye(Some(Value::Null))));
    assert_eq!(ask(br#"{"op":"turn_end"}"#), Ok(Ask::TurnEnd));
    assert_eq!(ask(br#"{"op":"cancel","tool_call_id":"c"}"#), Ok(Ask::Cancel("c".into())));
}

proptest! {
    /// TS-4, AG-2: whatever bytes come, they are read or refused.
    #[test]
    fn any_bytes_are_read_or_refused(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = ask(&line);
    }

    /// The same for lines that are almost right.
    #[test]
    fn almost_lines_are_read_or_refused(
        op in "(tool_call|tool_calls|hello|cancel|bye|x)",
        field in "(tool_call_id|tool|args|after|meta|calls|protocol|result)",
        value in r#"(null|7|"x"|\[\]|\["a"\]|\{\}|\{"a":1\}|\[\{\}\]|true|1e400)"#,
        at in 0usize..80,
    ) {
        let line = format!(r#"{{"op":"{op}","{field}":{value}}}"#);
        let _ = ask(line.as_bytes());
        let _ = ask(line.as_bytes().get(..at).unwrap_or(line.as_bytes()));
    }
}
