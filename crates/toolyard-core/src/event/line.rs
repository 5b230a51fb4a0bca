//! One line of an event file, which may be damaged, of another version, or written by a later program.

use super::{Event, EventKind, SCHEMA_VERSION};
use crate::SessionId;
use serde::Deserialize;
use serde_json::Value;

/// The content of one line of an event file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Line {
    /// An event.
    Event(Box<Event>),
    /// An event of this version whose kind is unknown here, because a later program wrote it.
    Stranger(Stranger),
}

/// The fields of an event of unknown kind, which every event has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Stranger {
    /// The version of the event format.
    pub v: u16,
    /// The event's number in its session.
    pub seq: u64,
    /// The event's position in the engine's life.
    pub position: u64,
    /// Wall time in milliseconds since 1970.
    pub wall_ms: u64,
    /// Monotonic time in microseconds since the engine was built.
    pub mono_us: u64,
    /// The session.
    pub session: SessionId,
    /// The name of its kind.
    #[serde(rename = "event")]
    pub name: String,
}

/// Why a line is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// The event format has another version.
    #[error("an event of version {0}; this program reads version {SCHEMA_VERSION}")]
    Version(u64),
    /// The line is JSON but not an event.
    #[error("not an event: {0}")]
    NotAnEvent(String),
}

/// The fields that tell whether a line is an event of this format.
#[derive(Deserialize)]
struct Header {
    v: Option<Value>,
    event: Option<String>,
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// [`LineError`] if the line is not an event of this version.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{AgentPath, Event, EventKind, event::{Line, LineError}};
    /// let event = Event::new("s".into(), AgentPath::root(), EventKind::SessionOpened);
    /// let text = serde_json::to_string(&event).unwrap();
    /// assert!(matches!(Line::read(&text), Ok(Line::Event(_))));
    /// let later = text.replace("session.opened", "session.renamed");
    /// assert!(matches!(Line::read(&later), Ok(Line::Stranger(stranger)) if stranger.name == "session.renamed"));
    /// assert_eq!(Line::read(&text.replace("\"v\":1", "\"v\":2")), Err(LineError::Version(2)));
    /// ```
    pub fn read(text: &str) -> Result<Self, LineError> {
        match serde_json::from_str::<Event>(text) {
            Ok(event) if event.v == SCHEMA_VERSION => Ok(Self::Event(Box::new(event))),
            Ok(event) => Err(LineError::Version(event.v.into())),
            Err(error) => Self::classify(text, &error),
        }
    }

    /// Classifies a line that does not parse as an event.
    #[cold]
    fn classify(text: &str, error: &serde_json::Error) -> Result<Self, LineError> {
        if error.is_syntax() || error.is_eof() {
            return Err(LineError::NotJson(error.to_string()));
        }
        let not_an_event = || LineError::NotAnEvent(error.to_string());
        let header: Header = serde_json::from_str(text).map_err(|_| not_an_event())?;
        match header.v.as_ref().and_then(Value::as_u64) {
            None => return Err(LineError::NotAnEvent("it has no version 'v'".to_owned())),
            Some(v) if v != u64::from(SCHEMA_VERSION) => return Err(LineError::Version(v)),
            Some(_) => {}
        }
        match header.event {
            Some(name) if !EventKind::NAMES.contains(&name.as_str()) => {
                let stranger = serde_json::from_str(text);
                stranger.map(Self::Stranger).map_err(|error| LineError::NotAnEvent(error.to_string()))
            }
            _ => Err(not_an_event()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentPath;

    /// OB-2: damaged, old and foreign lines are told apart.
    #[test]
    fn lines_that_are_no_events_say_why() {
        let event = Event::new("s".into(), AgentPath::root(), EventKind::SessionOpened);
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(Line::read(&text), Ok(Line::Event(Box::new(event))));
        let why = |text: &str| Line::read(text).unwrap_err().to_string();
        assert!(why(&text[..40]).starts_with("not JSON: EOF"), "{}", why(&text[..40]));
        assert!(why("seq 1").starts_with("not JSON"), "{}", why("seq 1"));
        assert_eq!(why("{}"), "not an event: it has no version 'v'");
        assert!(why("[]").starts_with("not an event"), "{}", why("[]"));
        assert!(why(&text.replace("\"seq\":0", "\"seq\":\"0\"")).starts_with("not an event: "));
        let later = text.replace("\"v\":1", "\"v\":70000");
        assert_eq!(why(&later), "an event of version 70000; this program reads version 1");
        assert!(why(&text.replace(",\"session\":\"s\"", "")).contains("missing field `session`"));
    }
}
