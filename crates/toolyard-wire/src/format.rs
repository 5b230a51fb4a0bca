//! The formats by name.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The formats in which calls and results are written.
///
/// # Examples
/// ```
/// use toolyard_wire::Format;
/// assert_eq!("openai-chat".parse(), Ok(Format::OpenAiChat));
/// assert_eq!(Format::Gemini.as_str(), "gemini");
/// assert!("claude".parse::<Format>().unwrap_err().to_string().contains("anthropic"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// `{"calls":[…]}` and `{"results":[…]}`.
    #[serde(rename = "neutral")]
    Neutral,
    /// OpenAI Chat Completions, and the many servers that speak it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Gemini `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] =
        [Self::Neutral, Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The name, as options and configuration spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for a text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format '{0}', expected neutral, openai-chat, openai-responses, anthropic or gemini")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    /// # Errors
    /// [`UnknownFormat`] for anything but the five names, which are case-sensitive.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.into_iter().find(|format| format.as_str() == text);
        named.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_is_the_serde_name() {
        for format in Format::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
        }
    }
}
