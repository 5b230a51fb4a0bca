//! Server-sent events: splits text with `data:` lines into events, as a whole or while it arrives.
//!
//! ```text
//!   the whole text ─► sse_events ──┐
//!                                  ├─► SseEvent ─► StreamDecoder ─► calls
//!   pieces of it ───► SseSplitter ─┘                   SseDecoder combines the lower path
//! ```

mod decoder;
mod splitter;

pub use decoder::SseDecoder;
pub use splitter::SseSplitter;

use std::borrow::Cow;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The name on the `event:` line; empty if there is none.
    pub event: &'a str,
    /// The data; several `data:` lines are joined with line feeds.
    pub data: Cow<'a, str>,
    /// Whether the blank line that ends an event was present. Without it the text was cut off.
    pub ended: bool,
}

/// An iterator over the events of a whole text: see [`sse_events`].
#[derive(Debug, Clone)]
pub struct SseEvents<'a> {
    rest: &'a str,
}

/// Splits SSE text into its events. Lines end with LF, CR or both; comments, ids and events without data are
/// skipped. The last event is included even if the blank line after it is missing;
/// [`SseEvent::ended`] is then false.
///
/// # Examples
/// ```
/// use toolyard_wire::sse_events;
/// let events: Vec<_> = sse_events(": hello\r\nevent: ping\r\ndata: {\r\ndata: }\r\n\r\ndata: [DONE]\n\n").collect();
/// assert_eq!((events[0].event, &*events[0].data), ("ping", "{\n}"));
/// assert_eq!(events[1].data, "[DONE]");
/// ```
pub fn sse_events(text: &str) -> SseEvents<'_> {
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    SseEvents { rest }
}

/// The starts by which SSE text is recognised.
const FIELDS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];

/// Whether a text looks like SSE: its first line that is not blank is a field or a comment.
pub(crate) fn looks_like_sse(text: &str) -> bool {
    let text = text.trim_start();
    FIELDS.iter().any(|field| text.starts_with(field))
}

/// Whether a text that begins with these bytes is SSE: `None` while there are too few to decide.
///
/// # Examples
/// ```
/// use toolyard_wire::begins_like_sse;
/// assert_eq!(begins_like_sse(b"\r\neven"), None);
/// assert_eq!(begins_like_sse(b"\r\nevent: ping"), Some(true));
/// assert_eq!(begins_like_sse(b"{"), Some(false));
/// ```
pub fn begins_like_sse(bytes: &[u8]) -> Option<bool> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if bytes.len() < MARK.len() && MARK.starts_with(bytes) {
        return None;
    }
    let text = bytes.strip_prefix(MARK).unwrap_or(bytes).trim_ascii_start();
    let mut fields = FIELDS.iter().map(|field| field.as_bytes());
    if fields.clone().any(|field| text.starts_with(field)) {
        return Some(true);
    }
    if fields.any(|field| field.starts_with(text)) { None } else { Some(false) }
}

/// Splits a line into the name and the value of its field.
fn split_field(line: &str) -> (&str, &str) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name, value.strip_prefix(' ').unwrap_or(value))
}

impl<'a> SseEvents<'a> {
    /// The next line without its end, or `None` at the end of the text.
    fn line(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.rest.find(['\n', '\r']) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let (line, rest) = self.rest.split_at(end);
        let width = if rest.starts_with("\r\n") { 2 } else { 1 };
        self.rest = &rest[width..];
        Some(line)
    }
}

impl<'a> Iterator for SseEvents<'a> {
    type Item = SseEvent<'a>;

    fn next(&mut self) -> Option<SseEvent<'a>> {
        let (mut event, mut data) = ("", None);
        while let Some(line) = self.line() {
            match (line, data.take()) {
                ("", Some(data)) => {
                    return Some(SseEvent { event, data, ended: true });
                }
                ("", None) => event = "",
                (line, kept) => {
                    data = kept;
                    field(line, &mut event, &mut data);
                }
            }
        }
        let ended = false;
        data.map(|data| SseEvent { event, data, ended })
    }
}

fn field<'a>(line: &'a str, event: &mut &'a str, data: &mut Option<Cow<'a, str>>) {
    match split_field(line) {
        ("event", value) => *event = value,
        ("data", value) => match data {
            Some(data) => {
                let data = data.to_mut();
                data.push('\n');
                data.push_str(value);
            }
            None => *data = Some(Cow::Borrowed(value)),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, &str, bool)]) {
        let found: Vec<_> =
            sse_events(text).map(|e| (e.event.to_owned(), e.data.into_owned(), e.ended)).collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(event, data, ended)| ((*event).to_owned(), (*data).to_owned(), *ended))
            .collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn lines_end_with_lf_cr_or_both() {
        for end in ["\n", "\r", "\r\n"] {
            let text = ["event: a", "data: 1", "data:2", "", "data: 3", "", ""].join(end);
            check(&text, &[("a", "1\n2", true), ("", "3", true)]);
        }
    }

    #[test]
    fn comments_ids_and_events_without_data_are_passed_over() {
        check(": hi\n\nid: 7\nretry: 9\n\nevent: a\n\ndata: x\n\n", &[("", "x", true)]);
    }

    #[test]
    fn the_last_event_counts_without_its_blank_line() {
        check("data: x\n\ndata: y", &[("", "x", true), ("", "y", false)]);
    }

    #[test]
    fn only_one_space_after_the_colon_is_dropped() {
        check("data:  x\ndata\n\n", &[("", " x\n", true)]);
    }
}
