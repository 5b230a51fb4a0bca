//! Sorts what a client sent: a message for rmcp, one that is refused here, or one that needs no answer.
//!
//! ```text
//!   bytes ─► admit ──► parse ─► message     with the room that it holds
//!              │         └────► refused     or ignored, if it needs no answer
//!              └──► refused before it is parsed: too much, or no room
//! ```

use super::{
    limits::{Held, Share},
    opening,
    refusal::Refusal,
};
use crate::envelope::{Envelope, Field};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ErrorData, JsonRpcError, JsonRpcMessage, RequestId},
    service::RxJsonRpcMessage,
};
use serde::de::IgnoredAny;
use serde_json::json;
use std::borrow::Cow;

/// Maximum number of characters of a method's name that are repeated in an answer.
const METHOD_MAX: usize = 100;

/// Maximum size of a request's id in bytes. It is kept in several places while the request is handled.
const ID_MAX: usize = 1024;

/// A message that may be parsed.
#[derive(Debug)]
pub(super) struct Admitted<'a> {
    /// What is to be parsed.
    pub(super) text: Cow<'a, str>,
    /// The room that it holds until it is answered, if it is a request.
    pub(super) held: Option<Held>,
}

/// Decides from a message's outer fields and its size whether it may be parsed. `extra` is the size of what comes with
/// it.
///
/// # Errors
/// The answer to a message that may not be parsed.
pub(super) fn admit<'a>(bytes: &'a [u8], share: &Share, extra: usize) -> Result<Admitted<'a>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::not_json("the message is not UTF-8"))?;
    let text = plain(text);
    if text.is_empty() {
        return Ok(Admitted { text: text.into(), held: None });
    }
    // What has no envelope, such as an object with a field twice, must not be parsed either: it could turn out to be a
    // request that holds no room.
    let envelope = Envelope::of(text).ok_or_else(|| no_envelope(text))?;
    let id = envelope.request_id();
    if id.as_ref().is_some_and(|id| id.to_string().len() > ID_MAX) {
        return Err(Refusal::invalid_request(None, format!("the id has more than {ID_MAX} bytes")));
    }
    match id {
        Some(id) if envelope.method != Field::Absent => admit_request(text, &envelope, id, share, extra),
        id => match share.fits(text.as_bytes()) {
            // It is not a request, so what it takes is given back as soon as it is handled.
            Ok(_) => Ok(Admitted { text: text.into(), held: None }),
            Err(_) if envelope.is_answer() => Ok(Admitted { text: failed_answer(id).into(), held: None }),
            Err(why) => Err(Refusal::no_room(None, why)),
        },
    }
}

/// Admits a request. `initialize` is reduced to what is used of it.
fn admit_request<'a>(
    text: &'a str,
    envelope: &Envelope,
    id: RequestId,
    share: &Share,
    extra: usize,
) -> Result<Admitted<'a>, Refusal> {
    let text: Cow<'_, str> = match is_opening(envelope) {
        false => text.into(),
        true => match opening::reduced(text, &id) {
            Some(reduced) => reduced.into(),
            None => return Err(Refusal::invalid_params(id, "invalid parameters for initialize")),
        },
    };
    let held = share.hold(text.as_bytes(), extra).map_err(|why| Refusal::no_room(Some(id), why))?;
    Ok(Admitted { text, held: Some(held) })
}

fn is_opening(envelope: &Envelope) -> bool {
    let is = |field: &Field, text: &str| matches!(field, Field::Text(found) if found == text);
    is(&envelope.jsonrpc, "2.0") && is(&envelope.method, opening::METHOD)
}

/// Takes the place of an answer that is too much to be read, so that its question does not wait forever.
fn failed_answer(id: Option<RequestId>) -> String {
    let error = ErrorData::internal_error("the client's answer has too many values", None);
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

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

/// Admits and reads what a client sent.
pub(super) fn receive(bytes: &[u8], share: &Share) -> Incoming {
    let Admitted { text, held } = match admit(bytes, share, 0) {
        Ok(admitted) => admitted,
        Err(refusal) => return Incoming::Refused(refusal),
    };
    let mut incoming = read(&text);
    if let (Incoming::Message(message), Some(held)) = (&mut incoming, held) {
        message.insert_extension(held);
    }
    incoming
}

/// Reads a message that was admitted.
pub(super) fn read(text: &str) -> Incoming {
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
    let Some(envelope) = Envelope::of(text) else { return Incoming::Refused(no_envelope(text)) };
    if is_notification(&envelope) {
        return Incoming::Ignored;
    }
    if envelope.method == Field::Absent && envelope.is_answer() {
        return invalid_answer(&envelope);
    }
    Incoming::Refused(refusal(&envelope, error))
}

fn no_envelope(text: &str) -> Refusal {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Refusal::invalid_request(None, "a message must be one JSON object without duplicate fields"),
        Err(error) => Refusal::not_json(format!("the message is not JSON: {error}")),
    }
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
    use super::super::limits::{ClientLimits, Room};
    use super::*;
    use serde_json::Value;

    /// Code and id of the answer; `None` if there is none.
    fn refused(text: &str) -> Option<(Value, Value)> {
        match read(text) {
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
        let Incoming::Message(message) = read(r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#) else { panic!() };
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
            assert!(matches!(read(text), Incoming::Message(_)), "{text}");
        }
    }

    /// A message takes room before it is parsed: one with too many values never has any, and its sender learns why.
    #[test]
    fn a_message_with_too_many_values_is_not_parsed() {
        let share = Room::new(ClientLimits::default().in_flight_bytes(1 << 20)).share();
        let values = format!("[0{}]", ",0".repeat(5000));
        let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{values}}}"#);
        let Incoming::Refused(refusal) = receive(request.as_bytes(), &share) else { panic!() };
        assert_eq!(refusal.id, Some(RequestId::Number(7)));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{values}}}"#);
        let Incoming::Message(message) = receive(answer.as_bytes(), &share) else { panic!() };
        assert!(matches!(*message, JsonRpcMessage::Error(_)), "its question ends: {message:?}");
        let note = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{values}}}"#);
        assert!(matches!(receive(note.as_bytes(), &share), Incoming::Refused(_)));
        let garbage = format!("[{values}");
        assert!(matches!(receive(garbage.as_bytes(), &share), Incoming::Refused(_)));
    }

    /// A request holds its room as long as its message, or what is made of it, is there.
    #[test]
    fn a_request_holds_its_room() {
        let share = Room::new(ClientLimits::default().in_flight_bytes(16 << 10)).whole();
        let ping =
            |id: u32| receive(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes(), &share);
        let mut held: Vec<Incoming> = (0..3).map(ping).collect();
        assert!(held.iter().all(|incoming| matches!(incoming, Incoming::Message(_))));
        let Incoming::Refused(refusal) = ping(3) else { panic!() };
        let refusal = serde_json::to_value(refusal).unwrap();
        assert_eq!(
            (&refusal["id"], &refusal["error"]["data"]["toolyard/error"]["code"]),
            (&json!(3), &json!("overloaded"))
        );
        held.pop();
        assert!(matches!(ping(4), Incoming::Message(_)));
        let answer = br#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert!(matches!(receive(answer, &share), Incoming::Message(_)), "answers need no room");
    }

    /// A message whose outer fields can be read in two ways is not parsed: as one of them it might hold no room, or be
    /// an `initialize` that is kept whole.
    #[test]
    fn a_message_with_a_field_twice_is_not_parsed() {
        let share = Room::new(ClientLimits::default()).whole();
        let params = r#""params":{"protocolVersion":"v","capabilities":{"experimental":{"x":{}}},"clientInfo":{"name":"c","version":"1"}}"#;
        for twice in [r#""result":1,"result":1"#, r#""method":"initialize","method":"initialize""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"initialize",{twice},{params}}}"#);
            assert!(matches!(receive(text.as_bytes(), &share), Incoming::Refused(_)), "{twice}");
        }
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"init\u0069alize",{params}}}"#);
        let Incoming::Message(message) = receive(text.as_bytes(), &share) else { panic!() };
        assert!(!format!("{message:?}").contains("\"x\""), "it is reduced however it is written");
    }

    /// An id that is long is not kept.
    #[test]
    fn an_id_is_bounded() {
        let share = Room::new(ClientLimits::default()).whole();
        let ping = |length| {
            receive(
                json!({"jsonrpc": "2.0", "id": "x".repeat(length), "method": "ping"}).to_string().as_bytes(),
                &share,
            )
        };
        assert!(matches!(ping(ID_MAX), Incoming::Message(_)));
        assert!(matches!(ping(ID_MAX + 1), Incoming::Refused(Refusal { id: None, .. })));
    }
}
