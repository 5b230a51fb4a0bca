//! Sorts what a client sent: a message for rmcp, one that is refused here, or one that needs no answer.

use super::refusal::Refusal;
use crate::envelope::{Envelope, Field};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ErrorData, JsonRpcError, JsonRpcMessage},
    service::RxJsonRpcMessage,
};
use serde::de::IgnoredAny;

/// Maximum number of characters of a method's name that are repeated in an answer.
const METHOD_MAX: usize = 100;

/// What a client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message for rmcp.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// A message that rmcp cannot read, or would take for something else.
    Refused(Refusal),
    /// An empty line, or a notification or response that cannot be read and gets no answer.
    Ignored,
}

/// Reads what a client sent.
pub(super) fn read(bytes: &[u8]) -> Incoming {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Incoming::Refused(Refusal::not_json("the message is not UTF-8"));
    };
    let text = plain(text);
    if text.is_empty() {
        return Incoming::Ignored;
    }
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        // rmcp takes a request that it cannot read for an unknown notification.
        Ok(JsonRpcMessage::Notification(_)) if is_request(text) => classify(text, None),
        Ok(message) => Incoming::Message(Box::new(message)),
        Err(error) => classify(text, Some(&error)),
    }
}

/// A text without a leading byte order mark or surrounding white space.
fn plain(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

fn is_request(text: &str) -> bool {
    Envelope::of(text).is_none_or(|envelope| !is_notification(&envelope))
}

/// Whether this is a notification. Some clients send theirs with `null` as the id.
fn is_notification(envelope: &Envelope) -> bool {
    let is_named_so = || matches!(&envelope.method, Field::Text(name) if name.starts_with("notifications/"));
    match envelope.id {
        Field::Absent => envelope.method != Field::Absent,
        Field::Null => is_named_so(),
        _ => false,
    }
}

/// Decides what to do about a message that cannot be read; `error` is the reason, if known.
fn classify(text: &str, error: Option<&serde_json::Error>) -> Incoming {
    let Some(envelope) = Envelope::of(text) else {
        return Incoming::Refused(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => {
                Refusal::invalid_request(None, "a message must be one JSON object without duplicate fields")
            }
            Err(error) => Refusal::not_json(format!("the message is not JSON: {error}")),
        });
    };
    if is_notification(&envelope) {
        return Incoming::Ignored;
    }
    if envelope.method == Field::Absent && envelope.is_answer() {
        return invalid_answer(&envelope);
    }
    Incoming::Refused(refusal(&envelope, error))
}

/// Replaces a response that makes no sense with an error, so that its request does not wait forever.
fn invalid_answer(envelope: &Envelope) -> Incoming {
    let Some(id) = envelope.request_id() else { return Incoming::Ignored };
    let error = ErrorData::internal_error("the client's answer is not valid", None);
    Incoming::Message(Box::new(JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))))
}

fn refusal(envelope: &Envelope, error: Option<&serde_json::Error>) -> Refusal {
    let id = envelope.request_id();
    let Field::Text(method) = &envelope.method else {
        return Refusal::invalid_request(id, "a request must have a method");
    };
    match id {
        None => Refusal::invalid_request(None, "the id of a request must be a string or a whole number"),
        Some(id) if envelope.jsonrpc != Field::Text("2.0".to_owned()) => {
            Refusal::invalid_request(Some(id), "'jsonrpc' must be \"2.0\"")
        }
        // Too deep for a parser that looks inside, or with a string that is not valid.
        Some(id) => match error.filter(|error| error.is_syntax()) {
            Some(error) => Refusal::invalid_params(id, format!("the request cannot be read: {error}")),
            None => {
                let method: String = method.chars().take(METHOD_MAX).collect();
                Refusal::invalid_params(id, format!("invalid parameters for {method}"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Code and id of the answer; `None` if there is none.
    fn refused(text: &str) -> Option<(Value, Value)> {
        match read(text.as_bytes()) {
            Incoming::Refused(refusal) => {
                let answer = serde_json::to_value(refusal).unwrap();
                assert_eq!(answer["jsonrpc"], "2.0");
                assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
                Some((answer["error"]["code"].clone(), answer["id"].clone()))
            }
            _ => None,
        }
    }

    /// JSON-RPC 2.0: every request is answered, under its own id if that can be made out.
    #[test]
    fn a_request_that_cannot_be_read_is_answered() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let request = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call"{rest}}}"#);
        let (parse, invalid, params) = (json!(-32700), json!(-32600), json!(-32602));
        let cases = [
            ("{broken".to_owned(), &parse, json!(null)),
            (request(r#","params":{"name":"t""#), &parse, json!(null)),
            ("nonsense".to_owned(), &parse, json!(null)),
            ("[]".to_owned(), &invalid, json!(null)),
            ("17".to_owned(), &invalid, json!(null)),
            ("{}".to_owned(), &invalid, json!(null)),
            (format!("[{}]", request("")), &invalid, json!(null)),
            (r#"{"jsonrpc":"2.0","id":7}"#.to_owned(), &invalid, json!(7)),
            (r#"{"jsonrpc":"2.0","id":"a","method":5}"#.to_owned(), &invalid, json!("a")),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), &invalid, json!(null)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), &invalid, json!(null)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), &invalid, json!(null)),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#.to_owned(), &invalid, json!(7)),
            (r#"{"id":7,"method":"ping"}"#.to_owned(), &invalid, json!(7)),
            (request(r#","params":{"name":"t","_meta":"text"}"#), &params, json!(7)),
            (request(r#","params":{"name":"t","_meta":[1]}"#), &params, json!(7)),
            (request(&format!(r#","params":{{"name":"t","arguments":{{"a":{deep}}}}}"#)), &params, json!(7)),
            (request(&format!(r#","params":{{"name":"t","_meta":{{"a":{deep}}}}}"#)), &params, json!(7)),
            (request(r#","params":{"name":"t","arguments":{"a":"\ud800"}}"#), &params, json!(7)),
            (format!(r#"{{"a":{deep},"#), &parse, json!(null)),
        ];
        for (text, code, id) in cases {
            let shown: String = text.chars().take(80).collect();
            assert_eq!(refused(&text), Some((code.clone(), id)), "{shown}");
        }
    }

    /// Messages that expect no answer get none, or two peers that misunderstand each other would never stop.
    #[test]
    fn notifications_and_answers_are_not_answered() {
        for text in [
            "",
            " ",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":5}}"#,
            r#"{"jsonrpc":"2.0","method":"telemetry/event","params":5}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":5}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":5}"#,
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }

    /// A response that makes no sense ends the wait for it.
    #[test]
    fn an_invalid_answer_is_an_error_of_its_question() {
        let Incoming::Message(message) = read(br#"{"jsonrpc":"2.0","id":7,"error":"no"}"#) else { panic!() };
        let JsonRpcMessage::Error(error) = *message else { panic!("{message:?}") };
        assert_eq!(serde_json::to_value(error).unwrap()["id"], 7);
    }

    /// A message that can be read is passed on.
    #[test]
    fn a_message_is_a_message() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","_meta":{"a":1}}}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nobody/knows\",\"params\":{}}\r",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        ] {
            assert!(matches!(read(text.as_bytes()), Incoming::Message(_)), "{text}");
        }
    }
}
