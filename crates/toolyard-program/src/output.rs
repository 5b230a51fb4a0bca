//! What a program printed, as the output of its tool.

use serde_json::Value;
use toolyard_core::{OutputKind, ToolError, ToolErrorKind, ToolOutput};

/// What was kept of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The text. Bytes that are no UTF-8 have been replaced; where bytes were left out it says so.
    pub text: String,
    /// How many bytes the program has printed.
    pub total: u64,
    /// Whether this is all of it, as it was printed.
    pub is_whole: bool,
}

impl Kept {
    /// A whole output.
    pub fn whole(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { total: text.len() as u64, text, is_whole: true }
    }

    /// The output of the tool.
    ///
    /// # Errors
    /// [`ToolErrorKind::OutputInvalid`] for what should be one JSON document and is not;
    /// [`ToolErrorKind::OutputTooLarge`] if that was longer than what is kept.
    pub(crate) fn read(self, kind: OutputKind) -> Result<ToolOutput, ToolError> {
        match kind {
            OutputKind::Text => Ok(ToolOutput::text(self.text)),
            OutputKind::Json => self.json().map(ToolOutput::json),
        }
    }

    fn json(&self) -> Result<Value, ToolError> {
        // A cut or a replaced byte could still be valid JSON, and mean something else.
        if !self.is_whole {
            let what = format!("the program printed {} bytes, more than are kept of a document", self.total);
            return Err(ToolError::new(ToolErrorKind::OutputTooLarge, what));
        }
        serde_json::from_str(&self.text).map_err(|error| {
            let what = format!("the program printed no single JSON document: {error}");
            ToolError::new(ToolErrorKind::OutputInvalid, what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn json(text: &str) -> Result<Value, ToolErrorKind> {
        let output = Kept::whole(text).read(OutputKind::Json).map_err(|error| error.kind())?;
        Ok(output.structured().unwrap().into_owned())
    }

    /// SB-2: exactly one document, with white space around it.
    #[test]
    fn json_is_exactly_one_document() {
        assert_eq!(json(" {\"a\": 1}\n"), Ok(json!({"a": 1})));
        assert_eq!(json("null"), Ok(Value::Null));
        for text in ["", "{} {}", "{\"a\":", "warning: x\n{}", "NaN"] {
            assert_eq!(json(text), Err(ToolErrorKind::OutputInvalid), "{text:?}");
        }
        assert_eq!(json(&"[".repeat(100_000)), Err(ToolErrorKind::OutputInvalid));
    }

    /// SB-2: what was cut is not read as if it were whole.
    #[test]
    fn a_cut_document_is_too_large() {
        let cut = Kept { text: "[]".to_owned(), total: 100, is_whole: false };
        let error = cut.read(OutputKind::Json).unwrap_err();
        assert_eq!(error.kind(), ToolErrorKind::OutputTooLarge);
    }
}
