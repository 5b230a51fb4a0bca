//! One event as it is kept for readers.

use std::sync::OnceLock;
use toolyard::{Event, EventKind};

/// The longest text of an event that is kept whole, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What an event takes beside its long texts, in bytes: an estimate, with its line.
const EVENT_BYTES: usize = 700;

/// An event that somebody has read, and its line once it is written.
#[derive(Debug)]
pub(crate) struct Kept {
    event: Event,
    line: OnceLock<Box<str>>,
}

/// A copy, with a long text cut. The other texts of events are short: those of what a tool tells of its call are cut where
/// they are made.
#[inline]
pub(super) fn copy(event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event.kind {
        EventKind::OutputDelta { text } => cut(text),
        EventKind::Failed(failure) | EventKind::Denied(failure) | EventKind::InputInvalid(failure) => {
            cut(&mut failure.message);
        }
        _ => {}
    }
    event
}

impl Kept {
    /// Keeps this event.
    pub(super) fn new(event: Event) -> Self {
        Self { event, line: OnceLock::new() }
    }

    pub(crate) fn position(&self) -> u64 {
        self.event.position
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.event.kind.name()
    }

    pub(super) fn event(&self) -> &Event {
        &self.event
    }

    /// The event as one line of JSON.
    pub(crate) fn line(&self) -> &str {
        self.line.get_or_init(|| {
            let line = serde_json::to_string(&self.event).expect("events can be written as JSON");
            line.into_boxed_str()
        })
    }
}

/// About how many bytes an event takes.
pub(super) fn weight(event: &Event) -> usize {
    let texts = match &event.kind {
        EventKind::OutputDelta { text } => text.len(),
        EventKind::ConfirmationRequested(request) => request.input_summary.len(),
        EventKind::Failed(failure) | EventKind::Denied(failure) | EventKind::InputInvalid(failure) => {
            failure.message.len() + failure.details.as_deref().map_or(0, details)
        }
        EventKind::Completed { details: Some(told), .. } => details(told),
        _ => 0,
    };
    EVENT_BYTES + 2 * texts
}

fn details(told: &toolyard::event::CallDetails) -> usize {
    let texts = told.partial_output.iter().chain(&told.command_executed).chain(&told.files_modified);
    let texts: usize = texts.map(String::len).sum();
    // Facts are bounded as one text is.
    texts + if told.metadata.is_empty() { 0 } else { 4096 }
}

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("[… and {left} bytes more]"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, SessionId};

    fn kept(text: String) -> String {
        let event = Event::new(SessionId::from("a"), AgentPath::root(), EventKind::OutputDelta { text });
        let line: serde_json::Value = serde_json::from_str(Kept::new(copy(&event)).line()).unwrap();
        line["text"].as_str().unwrap().to_owned()
    }

    /// HT-10: a text of 64 KiB is kept whole; a longer one is cut between two characters, and says how much is missing.
    #[test]
    fn a_long_text_is_cut() {
        let whole = "x".repeat(TEXT_BYTES_MAX);
        let is_kept = |text: String, expected: String| assert!(kept(text) == expected, "{}", expected.len());
        is_kept(whole.clone(), whole.clone());
        is_kept(format!("{whole}yz"), format!("{whole}[… and 2 bytes more]"));
        // A character that begins within the bound and ends beyond it is left out.
        is_kept(format!("{}ü!", &whole[1..]), format!("{}[… and 3 bytes more]", &whole[1..]));
    }
}
