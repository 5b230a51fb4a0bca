//! What a tool gives back when it has run.

use crate::ToolError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One part of a tool's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Bytes of text or data that this part carries.
    pub fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image { data, .. } => data.len(),
        }
    }
}

/// The output of a tool.
///
/// `content` is what the model reads. `structured` is the same as data, for programs and for formats that
/// carry it; where there is no content, its JSON text is what the model reads.
///
/// # Examples
/// ```
/// use toolyard_core::ToolOutput;
/// let output = ToolOutput::text("12 files").with_structured(serde_json::json!({"files": 12}));
/// assert!(output.success);
/// assert_eq!(output.to_text(), "12 files");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// `false` when the tool ran and says no; the call then ends as `execution_error` with this content (V5).
    pub success: bool,
    /// What the model reads.
    pub content: Vec<Content>,
    /// The same as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Facts about the call that are not for the model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Files this call changed, relative to the workspace, as far as the tool knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The command this call ran, if it ran one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_executed: Option<String>,
}

impl ToolOutput {
    fn of(content: Vec<Content>, structured: Option<Value>) -> Self {
        Self {
            success: true,
            content,
            structured,
            metadata: Map::new(),
            files_modified: Vec::new(),
            command_executed: None,
        }
    }

    /// A success with one text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(vec![Content::text(text)], None)
    }

    /// A success whose content is data.
    pub fn json(value: Value) -> Self {
        Self::of(Vec::new(), Some(value))
    }

    /// A success with these parts.
    pub fn parts(content: Vec<Content>) -> Self {
        Self::of(content, None)
    }

    /// The tool ran and says no: this text is what the model reads.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(text) }
    }

    /// Adds the output as data.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Names a file that this call changed.
    #[must_use]
    pub fn with_file_modified(mut self, path: impl Into<String>) -> Self {
        self.files_modified.push(path.into());
        self
    }

    /// Adds a fact that is not for the model.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// What the model reads, as text: the text parts, one under the other; without any part the JSON text of
    /// `structured`; otherwise nothing.
    pub fn to_text(&self) -> String {
        match (self.content.as_slice(), &self.structured) {
            ([], Some(value)) => value.to_string(),
            ([], None) => String::new(),
            ([Content::Text { text }], _) => text.clone(),
            (parts, _) => join_text(parts),
        }
    }

    /// The output as JSON: `structured` where there is one, otherwise the text.
    pub fn to_value(&self) -> Value {
        self.structured.clone().unwrap_or_else(|| Value::String(self.to_text()))
    }

    /// Bytes this output holds, as far as the output bound counts them.
    pub fn size(&self) -> usize {
        let content: usize = self.content.iter().map(Content::size).sum();
        content + self.structured.as_ref().map_or(0, value_size)
    }
}

/// The text parts of `content`, one under the other; parts that are no text are named.
pub(crate) fn join_text(content: &[Content]) -> String {
    let part = |part: &Content| match part {
        Content::Text { text } => text.clone(),
        Content::Image { media_type, .. } => format!("[image {media_type}]"),
    };
    content.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// About as many bytes as the value's JSON text has, counted without writing it.
fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| value_size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, field)| key.len() + 4 + value_size(field)).sum::<usize>()
        }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::parts(Vec::new())
    }
}

/// A serialisable value as a tool's output.
///
/// # Examples
/// ```
/// use toolyard_core::{Json, ToolOutput};
/// #[derive(serde::Serialize)]
/// struct Forecast { degrees: i32 }
/// let output: ToolOutput = Json(Forecast { degrees: 21 }).try_into()?;
/// assert_eq!(output.to_text(), r#"{"degrees":21}"#);
/// # Ok::<(), toolyard_core::ToolError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: Serialize> TryFrom<Json<T>> for ToolOutput {
    type Error = ToolError;

    fn try_from(Json(value): Json<T>) -> Result<Self, ToolError> {
        Ok(Self::json(serde_json::to_value(value)?))
    }
}
