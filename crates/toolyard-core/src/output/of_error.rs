//! Serialises the output of a failed call inside its error: the fields of the output stand among those of the error,
//! without `success`.

use super::{Content, Extras, ToolOutput, written::Fields};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "<[Content]>::is_empty")]
    content: &'a [Content],
    #[serde(flatten)]
    fields: Option<Fields<'a>>,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    content: Vec<Content>,
    #[serde(flatten)]
    extras: Extras,
}

/// An output as an error keeps it; `None` if it is empty.
pub(crate) fn unless_empty(output: ToolOutput) -> Option<Box<ToolOutput>> {
    let extras = output.extras.filter(|extras| !extras.is_empty());
    let is_empty = output.content.is_empty() && extras.is_none();
    (!is_empty).then(|| Box::new(ToolOutput { success: false, content: output.content, extras }))
}

pub(crate) fn serialize<S: Serializer>(output: &Option<Box<ToolOutput>>, to: S) -> Result<S::Ok, S::Error> {
    match output {
        Some(output) => Written { content: &output.content, fields: output.fields() }.serialize(to),
        None => to.serialize_none(),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<ToolOutput>>, D::Error> {
    let Read { content, extras } = Read::deserialize(from)?;
    Ok(unless_empty(ToolOutput { success: false, content, extras: Some(Box::new(extras)) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallError, ErrorKind};
    use serde_json::{Value, json};

    fn full() -> ToolOutput {
        ToolOutput::failure("no\nfor a reason")
            .with_structured(json!({"n": 7}))
            .with_metadata("m", 1)
            .with_file_modified("f")
            .with_command_executed("ls")
    }

    fn read_back(error: &CallError) -> CallError {
        serde_json::from_str(&serde_json::to_string(error).unwrap()).unwrap()
    }

    /// V5: an error with an output has the fields of both, and reads back unchanged.
    #[test]
    fn an_error_keeps_its_output_whole() {
        let error = CallError::new(ErrorKind::ExecutionError, "no").with_output(full());
        let written = serde_json::to_value(&error).unwrap();
        assert_eq!(written["content"], json!([{"type": "text", "text": "no\nfor a reason"}]));
        assert_eq!((&written["structured"], &written["metadata"]), (&json!({"n": 7}), &json!({"m": 1})));
        assert_eq!((&written["files_modified"], &written["command_executed"]), (&json!(["f"]), &json!("ls")));
        assert!(written.get("success").is_none());
        let read = read_back(&error);
        assert_eq!((&read, read.output().map(|output| output.success)), (&error, Some(false)));
        let later = CallError::new(ErrorKind::Cancelled, "stopped").after_error(Box::new(error.clone()));
        assert_eq!(read_back(&later), later);
        assert_ne!(error, error.clone().with_output(ToolOutput::failure("no\nfor a reason")));
    }

    /// V5: an error without an output has no extra fields; an older error with content alone still reads.
    #[test]
    fn an_error_without_output_has_no_more_fields() {
        let error = CallError::new(ErrorKind::Internal, "x").with_output(ToolOutput::parts(Vec::new()));
        assert_eq!(error, CallError::new(ErrorKind::Internal, "x"));
        let written = serde_json::to_value(&error).unwrap();
        let fields: Vec<&String> = written.as_object().unwrap().keys().collect();
        let expect = ["code", "message", "attempts", "outcome", "retryable", "advice", "is_user_visible"];
        assert_eq!(fields, expect);
        let read = read_back(&error);
        assert_eq!((read.output(), read.content(), read.output_size()), (None, &[][..], 0));
        let mut older: Value = written;
        older["content"] = json!([{"type": "text", "text": "half"}]);
        let older: CallError = serde_json::from_value(older).unwrap();
        assert_eq!((older.content(), older.output_size()), (&[Content::text("half")][..], 4));
    }

    /// An error stays as small as it was when it kept only the content.
    #[test]
    fn an_error_is_no_larger() {
        assert!(size_of::<CallError>() <= 160, "{}", size_of::<CallError>());
    }
}
