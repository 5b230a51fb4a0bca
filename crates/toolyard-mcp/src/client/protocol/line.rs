//! Reads a server's lines: messages, answers that cannot be read, and lines to ignore.

use super::answer;
use crate::{
    client::text::{TooMany, scan},
    envelope::{Envelope, Field},
};
use rmcp::{
    RoleClient,
    model::{ErrorData, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    service::RxJsonRpcMessage,
};

/// How many lines in a row that are not messages end the reading: a banner is ignored, a flood is not.
const STRAY_MAX: usize = 1000;

/// How many characters of a body that is no message are shown.
#[cfg(feature = "http")]
const SHOWN_CHARS: usize = 256;

/// Why a server's lines are not read any further.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    /// Bytes that are not text.
    #[error("it sent a line that is not UTF-8")]
    NotText,
    /// Too many lines in a row that are not messages.
    #[error("it sent {STRAY_MAX} lines in a row that are not messages")]
    OnlyStray,
    /// Too many keys and values in a message that is no answer, and so has no call that could be told.
    #[error("it sent a message with {0}")]
    TooMany(TooMany),
}

/// Reads lines.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    strays: usize,
}

impl Reader {
    /// The message on a line; `None` if the line is not a message.
    pub(crate) fn read(&mut self, line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleClient>>, LineError> {
        let text = std::str::from_utf8(line).map_err(|_| LineError::NotText)?.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let message = parse(text)?;
        self.strays = if message.is_some() { 0 } else { self.strays + 1 };
        if message.is_none() {
            tracing::debug!(bytes = text.len(), "skipped a line that is not a message");
        }
        if self.strays >= STRAY_MAX { Err(LineError::OnlyStray) } else { Ok(message) }
    }
}

/// The message in a text, if it is one. An answer that is too large to be parsed is replaced with an error.
pub(crate) fn parse(text: &str) -> Result<Option<ServerJsonRpcMessage>, LineError> {
    match scan::check(text) {
        Ok(()) => Ok(serde_json::from_str(text).ok().or_else(|| invalid_answer(text))),
        Err(why) => too_large(text, why).map(Some).map_err(LineError::TooMany),
    }
}

/// The message in the body of an answer over HTTP. An answer that is too large to be parsed is replaced with an error.
///
/// # Errors
/// Why it is no message.
#[cfg(feature = "http")]
pub(crate) fn body(body: &[u8]) -> Result<ServerJsonRpcMessage, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    match scan::check(text) {
        Ok(()) => serde_json::from_str(text).map_err(|error| {
            let begin: String = text.chars().take(SHOWN_CHARS).collect();
            format!("{error}: {begin}")
        }),
        Err(why) => too_large(text.trim(), why).map_err(|why| format!("it has {why}")),
    }
}

/// The data of an event, if rmcp may parse it. An answer that is too large is replaced with an error, and anything else
/// is left out.
#[cfg(feature = "http")]
pub(crate) fn bounded(data: String) -> Option<String> {
    let Err(why) = scan::check(&data) else { return Some(data) };
    let answer = too_large(data.trim(), why).ok()?;
    serde_json::to_string(&answer).ok()
}

/// The error that stands in for an answer which is too large to be parsed. Another message has none.
fn too_large(text: &str, why: TooMany) -> Result<ServerJsonRpcMessage, TooMany> {
    answered_id(text).map(|id| answer::too_large(id, why)).ok_or(why)
}

/// The id of the request that a text answers.
fn answered_id(text: &str) -> Option<RequestId> {
    let envelope = Envelope::of(text)?;
    if envelope.method != Field::Absent {
        return None;
    }
    envelope.request_id()
}

/// Replaces an answer that makes no sense with an error, so that its call does not wait forever.
fn invalid_answer(text: &str) -> Option<ServerJsonRpcMessage> {
    let id = answered_id(text)?;
    let error = ErrorData::internal_error("the server's answer is not valid", None);
    Some(JsonRpcMessage::Error(JsonRpcError::new(Some(id), error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_answer_is_an_error_of_its_call() {
        let mut reader = Reader::default();
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        for line in
            [r#"{"jsonrpc":"2.0","id":7}"#, r#"{"id":7,"result":5}"#, r#"{"id":7,"error":"no"}"#, &deep]
        {
            let message = reader.read(line.as_bytes()).unwrap();
            let Some(JsonRpcMessage::Error(error)) = message else { panic!("{line}: {message:?}") };
            assert_eq!(error.id, Some(RequestId::Number(7)));
        }
    }

    /// An answer that would take far more memory than its text fails its call; nothing of it is parsed. Another message
    /// of that kind ends the connection.
    #[test]
    fn an_answer_of_too_many_values_is_an_error_of_its_call() {
        let many = format!("[{}1]", "1,".repeat(scan::NODES_MAX));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{many}}}}}"#);
        let message = Reader::default().read(answer.as_bytes()).unwrap();
        let Some(JsonRpcMessage::Error(error)) = message else { panic!("{message:?}") };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        let note = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{many}}}"#);
        let error = Reader::default().read(note.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "it sent a message with more than 100000 keys and values");
        #[cfg(feature = "http")]
        {
            let short = bounded(answer).unwrap();
            assert!(short.len() < 200 && short.contains("\"id\":7") && short.contains("100000"), "{short}");
            assert_eq!((bounded(note.clone()), bounded("{}".to_owned())), (None, Some("{}".to_owned())));
            assert_eq!(body(note.as_bytes()).unwrap_err(), "it has more than 100000 keys and values");
        }
    }

    #[test]
    fn a_banner_is_skipped_and_a_flood_is_not() {
        let mut reader = Reader::default();
        assert!(reader.read(b"Server running on stdio").unwrap().is_none());
        assert!(reader.read(b"").unwrap().is_none());
        let flood = (0..STRAY_MAX).map(|_| reader.read(b"log")).find_map(Result::err);
        assert_eq!(flood, Some(LineError::OnlyStray));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_the_end() {
        assert_eq!(Reader::default().read(&[0xff, 0xfe]).err(), Some(LineError::NotText));
    }
}
