//! The error for text that cannot be read as a model's answer.

use crate::Format;

/// Why a text could not be read. Messages are one line, and name the place and what to do.
///
/// Broken *arguments* are not an error: they stay text, and the engine answers that call alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is only white space, or SSE text without data.
    #[error("the input is empty: expected a provider's response as JSON or as SSE text")]
    Empty,
    /// The text has more bytes than [`BODY_BYTES_MAX`](crate::bounds::BODY_BYTES_MAX).
    #[error("the response is larger than {max} bytes: send one response at a time")]
    TooLarge {
        /// The bound.
        max: usize,
    },
    /// The bytes are not UTF-8.
    #[error("byte {position} is not valid UTF-8: save the file as UTF-8")]
    NotText {
        /// The first byte that is not UTF-8, from 0.
        position: usize,
    },
    /// The text is not JSON.
    #[error("not JSON: {reason} at line {line} column {column}{}", hint(advice))]
    NotJson {
        /// What the parser reported.
        reason: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What to do, if the text suggests it.
        advice: Option<&'static str>,
    },
    /// The text ends inside a JSON value.
    #[error(
        "the JSON ends too early, at line {line} column {column}: the response was cut off, fetch it again"
    )]
    Truncated {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// Arrays and objects nest deeper than the parser goes.
    #[error("the JSON nests deeper than 127 levels at line {line} column {column}: flatten it")]
    TooDeep {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The JSON is of no known format.
    #[error(
        "unknown format: found {seen}; the formats are neutral, openai-chat, openai-responses, anthropic and \
         gemini, name one with --from"
    )]
    UnknownFormat {
        /// What was found.
        seen: String,
    },
    /// The JSON is not of the format that was asked for.
    #[error("this is not a {format} response: found {seen}; name the right format with --from, or omit it")]
    WrongFormat {
        /// The format asked for.
        format: Format,
        /// What was found.
        seen: String,
    },
    /// The text is a line of an episodes file.
    #[error("this is an episode, not a response: read it with --from episodes")]
    Episode,
    /// A value around the calls is of the wrong kind.
    #[error("{place}: expected {expected}, found {found}")]
    Shape {
        /// The path of the value.
        place: String,
        /// What was expected there.
        expected: &'static str,
        /// What was found there.
        found: &'static str,
    },
    /// The provider answered with an error instead of a message.
    #[error("the provider returned an error: {message}")]
    Provider {
        /// The provider's own words.
        message: String,
    },
    /// A message starts in a stream before the one before it has stopped.
    #[error("a second message starts before the first has stopped: send one response at a time")]
    SecondMessage,
    /// An event of a stream cannot be read. Lines and columns count within the event's data.
    #[error("event {number} of the stream: {error}")]
    Event {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with its data.
        error: Box<DecodeError>,
    },
    /// A streamed index is above its bound.
    #[error("{place}: index {index} is above {max}")]
    IndexTooLarge {
        /// The path of the index.
        place: &'static str,
        /// The index.
        index: u64,
        /// The bound.
        max: u64,
    },
}

impl DecodeError {
    /// Adds the number of the event to an error that does not say where it is, or only within the event's data.
    pub(crate) fn in_event(self, number: usize) -> Self {
        match self {
            Self::NotJson { .. } | Self::Truncated { .. } | Self::TooDeep { .. } | Self::SecondMessage => {
                Self::Event { number, error: Box::new(self) }
            }
            other => other,
        }
    }
}

fn hint(advice: &Option<&'static str>) -> String {
    advice.map_or_else(String::new, |advice| format!("; {advice}"))
}
