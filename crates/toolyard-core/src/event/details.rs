//! What a tool tells of a call beside the text for the model, as the event of the call's end carries it.

use crate::{CallError, ErrorKind, ToolOutput, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The most bytes of each text in [`CallDetails`], and of its metadata altogether.
pub const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// The most files that [`CallDetails`] names.
pub const DETAIL_FILES_MAX: usize = 100;

/// What a tool tells of a call beside the text for the model (OB-2).
///
/// Everything here is bounded, because events wait in queues by the thousand: the call's result has it whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallDetails {
    /// The text that a call had produced when it was stopped, by a cancel or a time limit (SC-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_output: Option<String>,
    /// The files that the call changed; beyond [`DETAIL_FILES_MAX`] an entry says how many more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The command that the call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_executed: Option<String>,
    /// The tool's facts about the call; those beyond [`DETAIL_BYTES_MAX`] bytes are left out.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What the program of the call used (SB-9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl CallDetails {
    /// Those of a call with this output, if it has any.
    pub fn of_output(output: &ToolOutput) -> Option<Box<Self>> {
        output.has_details().then(|| Box::new(Self::told(output)))
    }

    /// Those of a call with this error, if it has any.
    pub fn of_error(error: &CallError) -> Option<Box<Self>> {
        let output = error.output()?;
        let was_stopped =
            matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Timeout | ErrorKind::DeadlineExceeded);
        let partial_output = Some(output).filter(|_| was_stopped).map(ToolOutput::to_text);
        Self { partial_output: partial_output.filter(|text| !text.is_empty()), ..Self::told(output) }
            .unless_empty()
    }

    fn told(output: &ToolOutput) -> Self {
        Self {
            partial_output: None,
            files_modified: output.files_modified().to_vec(),
            command_executed: output.command_executed().map(str::to_owned),
            metadata: output.all_metadata().cloned().unwrap_or_default(),
            usage: output.usage(),
        }
    }

    fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// Cuts what is too long for an event, after secrets were taken out: half a secret is not recognised.
    pub fn cut(&mut self) {
        let files = self.files_modified.len();
        if files > DETAIL_FILES_MAX {
            self.files_modified.truncate(DETAIL_FILES_MAX);
            self.files_modified.push(format!("[… and {} more]", files - DETAIL_FILES_MAX));
        }
        let texts = self.partial_output.iter_mut().chain(&mut self.command_executed);
        texts.chain(&mut self.files_modified).for_each(cut_text);
        let mut left = DETAIL_BYTES_MAX;
        self.metadata.retain(|key, value| {
            let fits =
                (key.len() + crate::extent::value_size(value)).checked_add(4).filter(|size| *size <= left);
            left -= fits.unwrap_or(0);
            fits.is_some()
        });
    }
}

/// Cuts a text that is too long; its end says how much is missing.
fn cut_text(text: &mut String) {
    if text.len() > DETAIL_BYTES_MAX {
        let end = text.floor_char_boundary(DETAIL_BYTES_MAX);
        let more = text.len() - end;
        text.truncate(end);
        *text += &format!("[… and {more} more bytes]");
    }
}

/// Writes details among the fields of their event.
pub(super) fn serialize<S: Serializer>(details: &Option<Box<CallDetails>>, to: S) -> Result<S::Ok, S::Error> {
    match details {
        Some(details) => details.serialize(to),
        None => to.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<CallDetails>>, D::Error> {
    Ok(CallDetails::deserialize(from)?.unless_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OB-2: what a tool tells is bounded in its event, and says so.
    #[test]
    fn details_are_bounded() {
        let long = "é".repeat(DETAIL_BYTES_MAX);
        let mut output = ToolOutput::text("a").with_command_executed(long.clone());
        output =
            output.with_metadata("small", 1).with_metadata("large", long.clone()).with_metadata("last", 2);
        for n in 0..DETAIL_FILES_MAX + 5 {
            output = output.with_file_modified(format!("{n}"));
        }
        let mut details = CallDetails::of_output(&output).unwrap();
        details.cut();
        assert_eq!(
            details.command_executed.unwrap().len(),
            DETAIL_BYTES_MAX + "[… and 16384 more bytes]".len()
        );
        assert_eq!(details.metadata.keys().collect::<Vec<_>>(), ["small", "last"]);
        assert_eq!(details.files_modified.len(), DETAIL_FILES_MAX + 1);
        assert_eq!(details.files_modified.last().unwrap(), "[… and 5 more]");
    }

    /// SC-5: only a call that was stopped has partial output: of any other, the result has it whole.
    #[test]
    fn a_stopped_call_has_partial_output() {
        let of = |kind, text: &str| {
            CallDetails::of_error(&CallError::new(kind, "x").with_output(ToolOutput::text(text)))
        };
        for kind in [ErrorKind::Cancelled, ErrorKind::Timeout, ErrorKind::DeadlineExceeded] {
            assert_eq!(of(kind, "half").unwrap().partial_output.as_deref(), Some("half"));
        }
        assert_eq!((of(ErrorKind::ExecutionError, "whole"), of(ErrorKind::Cancelled, "")), (None, None));
        assert_eq!(CallDetails::of_output(&ToolOutput::text("plain")), None);
    }
}
