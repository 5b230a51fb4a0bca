//! Writes an output as JSON, and compares it as it would be written.

use super::{Content, ToolOutput};
use crate::Usage;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The fields that most outputs do not have.
#[derive(PartialEq, Serialize)]
pub(super) struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    files_modified: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    command_executed: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Serialize)]
struct Written<'a> {
    success: bool,
    content: &'a [Content],
    #[serde(flatten)]
    fields: Option<Fields<'a>>,
}

impl ToolOutput {
    pub(super) fn fields(&self) -> Option<Fields<'_>> {
        let extras = self.extras.as_ref().filter(|extras| !extras.is_empty())?;
        Some(Fields {
            structured: self.structured(),
            metadata: &extras.metadata,
            files_modified: &extras.files_modified,
            command_executed: &extras.command_executed,
            usage: extras.usage,
        })
    }
}

impl Serialize for ToolOutput {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Written { success: self.success, content: &self.content, fields: self.fields() }.serialize(to)
    }
}

impl PartialEq for ToolOutput {
    fn eq(&self, other: &Self) -> bool {
        self.success == other.success && self.content == other.content && self.fields() == other.fields()
    }
}
