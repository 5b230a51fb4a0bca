//! The output of a tool that has run.

pub(crate) mod of_error;
mod written;

use crate::{
    ToolError, Usage,
    extent::{field_footprint, nests_at_most, value_footprint, value_size},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{borrow::Cow, iter, sync::Arc};

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
    /// An image.
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
/// The model reads `content`. [`structured`](Self::structured) is the same as data, for programs and for formats that
/// carry it; without any content, the model reads its JSON text.
///
/// # Examples
/// ```
/// use toolyard_core::ToolOutput;
/// let output = ToolOutput::text("12 files").with_structured(serde_json::json!({"files": 12}));
/// assert!(output.success);
/// assert_eq!(output.to_text(), "12 files");
/// ```
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// `false` if the tool ran but reports a failure; the call then ends as `execution_error` with this content (V5).
    pub success: bool,
    /// The parts that the model reads.
    pub content: Vec<Content>,
    /// Fields that most outputs do not have, boxed because thousands of outputs may wait for their batch.
    #[serde(flatten, default)]
    extras: Option<Box<Extras>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Extras {
    #[serde(default)]
    structured: Option<Value>,
    /// The field of `structured` that is the text of the first part, which is not kept twice.
    #[serde(skip)]
    text_field: Option<Cow<'static, str>>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    files_modified: Vec<String>,
    #[serde(default)]
    command_executed: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
    /// The arguments that ran, if the person who approved the call changed them. Kept here because a result has no room
    /// for what hardly any has.
    #[serde(skip)]
    edited: Option<Arc<Value>>,
}

impl ToolOutput {
    /// A success with one text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::parts(vec![Content::text(text)])
    }

    /// A success whose output is data.
    pub fn json(value: Value) -> Self {
        Self::parts(Vec::new()).with_structured(value)
    }

    /// A success with these parts.
    pub fn parts(content: Vec<Content>) -> Self {
        Self { success: true, content, extras: None }
    }

    /// A failure that the tool reports after it ran; the model reads this text.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(text) }
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Sets the output as data.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        let extras = self.extras();
        (extras.structured, extras.text_field) = (Some(value), None);
        self
    }

    /// Sets the output as data: an object of which one field is the text of the first part, and these are the others.
    /// The text is kept once, and copied for whoever reads the data. If the first part is no text, there is no such
    /// field.
    ///
    /// # Examples
    /// ```
    /// use serde_json::{Map, json};
    /// use toolyard_core::ToolOutput;
    /// let others = Map::from_iter([("size".to_owned(), json!(5))]);
    /// let output = ToolOutput::text("hello").with_structured_text("content", others);
    /// assert_eq!(*output.structured().unwrap(), json!({"content": "hello", "size": 5}));
    /// ```
    #[must_use]
    pub fn with_structured_text(
        mut self,
        field: impl Into<Cow<'static, str>>,
        others: Map<String, Value>,
    ) -> Self {
        let extras = self.extras();
        (extras.structured, extras.text_field) = (Some(Value::Object(others)), Some(field.into()));
        self
    }

    /// Names a file that this call changed, relative to the workspace.
    #[must_use]
    pub fn with_file_modified(mut self, path: impl Into<String>) -> Self {
        self.extras().files_modified.push(path.into());
        self
    }

    /// Names the command that this call ran.
    #[must_use]
    pub fn with_command_executed(mut self, command: impl Into<String>) -> Self {
        self.extras().command_executed = Some(command.into());
        self
    }

    /// Adds a fact about the call that the model does not read.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extras().metadata.insert(key.into(), value.into());
        self
    }

    /// Sets what the program of this call used (SB-9).
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.extras().usage = Some(usage);
        self
    }

    /// Passes every field but the content to one of these: each text to `text`, all data to `data`; for engines.
    #[doc(hidden)]
    pub fn extras_mut(&mut self, text: &mut dyn FnMut(&mut String), data: &mut dyn FnMut(&mut Value)) {
        let Some(extras) = &mut self.extras else { return };
        extras.structured.iter_mut().for_each(&mut *data);
        if !extras.metadata.is_empty() {
            let mut metadata = Value::Object(std::mem::take(&mut extras.metadata));
            data(&mut metadata);
            if let Value::Object(metadata) = metadata {
                extras.metadata = metadata;
            }
        }
        extras.files_modified.iter_mut().chain(&mut extras.command_executed).for_each(text);
    }

    /// The output as data, put together if it has a field that is [the text](Self::with_structured_text).
    pub fn structured(&self) -> Option<Cow<'_, Value>> {
        let extras = self.extras.as_ref()?;
        let kept = extras.structured.as_ref()?;
        Some(match (&extras.text_field, kept, self.content.first()) {
            (Some(field), Value::Object(others), Some(Content::Text { text })) => {
                let text = (field.clone().into_owned(), Value::String(text.clone()));
                Cow::Owned(Value::Object(iter::once(text).chain(others.clone()).collect()))
            }
            _ => Cow::Borrowed(kept),
        })
    }

    /// Whether there is an output as data.
    pub fn has_structured(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.structured.is_some())
    }

    /// The files this call changed, as far as the tool knows.
    pub fn files_modified(&self) -> &[String] {
        self.extras.as_ref().map_or(&[], |extras| &extras.files_modified)
    }

    /// The command this call ran, if it ran one.
    pub fn command_executed(&self) -> Option<&str> {
        self.extras.as_ref()?.command_executed.as_deref()
    }

    /// What the program of this call used, if it had one.
    pub fn usage(&self) -> Option<Usage> {
        self.extras.as_ref()?.usage
    }

    /// All facts about the call that the model does not read.
    pub fn all_metadata(&self) -> Option<&Map<String, Value>> {
        self.extras.as_ref().map(|extras| &extras.metadata).filter(|metadata| !metadata.is_empty())
    }

    /// The arguments that ran, if the person who approved the call changed them.
    pub(crate) fn edited(&self) -> Option<&Arc<Value>> {
        self.extras.as_ref()?.edited.as_ref()
    }

    #[inline]
    pub(crate) fn set_edited(&mut self, edited: Option<Arc<Value>>) {
        // What a handler hands on of a call of its own says nothing of this one.
        if edited.is_some() || self.extras.is_some() {
            self.extras().edited = edited;
        }
    }

    /// Whether it says more of the call than what the model reads.
    pub(crate) fn has_details(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.has_details())
    }

    /// A fact about the call that the model does not read.
    pub fn metadata(&self, key: &str) -> Option<&Value> {
        self.extras.as_ref()?.metadata.get(key)
    }

    /// The text the model reads: the text parts, each from the start of a line; if there are no parts, the JSON text of `structured`;
    /// otherwise nothing.
    pub fn to_text(&self) -> String {
        match self.content.as_slice() {
            [] => self.structured().map(|value| value.to_string()).unwrap_or_default(),
            [Content::Text { text }] => text.clone(),
            parts => join_text(parts),
        }
    }

    /// The output as JSON: `structured` if there is any, otherwise the text.
    pub fn to_value(&self) -> Value {
        self.structured().map(Cow::into_owned).unwrap_or_else(|| Value::String(self.to_text()))
    }

    /// How much memory it takes, in bytes, more or less; for engines. What its data take that are put together for a
    /// reader is the reader's.
    #[doc(hidden)]
    #[inline]
    pub fn footprint(&self) -> usize {
        match self.only_text() {
            Some(text) => size_of::<Content>() + text.len(),
            None => self.footprint_of_all(),
        }
    }

    /// The text of an output that has nothing else, as most have; for engines. Whether it is a success is another matter.
    #[doc(hidden)]
    #[inline]
    pub fn only_text(&self) -> Option<&str> {
        match (&*self.content, &self.extras) {
            ([Content::Text { text }], None) => Some(text),
            _ => None,
        }
    }

    fn footprint_of_all(&self) -> usize {
        let content: usize = self.content.iter().map(|part| size_of::<Content>() + part.size()).sum();
        content + self.extras.as_ref().map_or(0, |extras| extras.footprint())
    }

    /// The length of the text that is kept once and put into the data of whoever reads them.
    fn shared_text(&self) -> usize {
        let is_shared = self.extras.as_ref().is_some_and(|extras| extras.text_field.is_some());
        self.content.first().filter(|_| is_shared).map_or(0, Content::size)
    }

    /// The approximate size of this output in bytes, when it is written. A text that is content and data counts as
    /// both.
    #[inline]
    pub fn size(&self) -> usize {
        self.only_text().map_or_else(|| self.size_of_all(), str::len)
    }

    /// Whether its data, and its metadata, nest no deeper than so many levels. A text nests in nothing.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_core::ToolOutput;
    /// let output = ToolOutput::json(json!({"a": [1]}));
    /// assert!(output.nests_at_most(2) && !output.nests_at_most(1));
    /// ```
    #[inline]
    pub fn nests_at_most(&self, levels: usize) -> bool {
        self.extras.as_ref().is_none_or(|extras| {
            let mut data = extras.structured.iter().chain(extras.metadata.values());
            data.all(|value| nests_at_most(value, levels))
        })
    }

    fn size_of_all(&self) -> usize {
        let content: usize = self.content.iter().map(Content::size).sum();
        content + self.shared_text() + self.extras.as_ref().map_or(0, |extras| extras.size())
    }
}

impl Extras {
    fn has_details(&self) -> bool {
        let is_empty =
            self.metadata.is_empty() && self.files_modified.is_empty() && self.command_executed.is_none();
        !is_empty || self.usage.is_some()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn footprint(&self) -> usize {
        let structured = self.structured.as_ref().map_or(0, value_footprint);
        let metadata: usize =
            self.metadata.iter().map(|(key, value)| field_footprint(key) + value_footprint(value)).sum();
        let files: usize = self.files_modified.iter().map(|file| size_of::<String>() + file.len()).sum();
        let command = self.command_executed.as_ref().map_or(0, String::len);
        let text_field = self.text_field.as_deref().map_or(0, str::len);
        size_of::<Self>() + structured + text_field + metadata + files + command
    }

    fn size(&self) -> usize {
        let structured = self.structured.as_ref().map_or(0, value_size);
        let metadata: usize = self.metadata.iter().map(|(key, value)| key.len() + value_size(value)).sum();
        let files: usize = self.files_modified.iter().map(String::len).sum();
        structured + metadata + files + self.command_executed.as_ref().map_or(0, String::len)
    }
}

/// Joins the parts of `content`, each from the start of a line; a part that is not text is named.
fn join_text(content: &[Content]) -> String {
    let mut joined = String::new();
    for (at, part) in content.iter().enumerate() {
        if at > 0 && !joined.ends_with('\n') {
            joined.push('\n');
        }
        match part {
            Content::Text { text } => joined.push_str(text),
            Content::Image { media_type, .. } => joined.extend(["[image ", media_type, "]"]),
        }
    }
    joined
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

/// A serialisable value as the output of a tool.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_output_reads_back_as_it_was_written() {
        let plain = ToolOutput::text("x");
        assert_eq!(
            serde_json::to_value(&plain).unwrap(),
            json!({"success": true, "content": [{"type": "text", "text": "x"}]})
        );
        let full = ToolOutput::text("x")
            .with_structured(json!({"a": 1}))
            .with_file_modified("f")
            .with_command_executed("ls")
            .with_metadata("ms", 3);
        for output in [plain, full] {
            let text = serde_json::to_string(&output).unwrap();
            let read: ToolOutput = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!(read, output);
        }
    }

    fn file(text: &str) -> ToolOutput {
        let hint = Content::text("[lines 1 to 2 of 3]");
        let others = Map::from_iter([("size".to_owned(), json!(9))]);
        ToolOutput::parts(vec![Content::text(text), hint]).with_structured_text("content", others)
    }

    /// A text that is content and data takes the memory of one, and is written as both.
    #[test]
    fn a_text_that_is_data_too_is_kept_once() {
        let text = "x".repeat(1 << 20);
        let mut output = file(&text);
        assert_eq!(*output.structured().unwrap(), json!({"content": text, "size": 9}));
        let whole = output.clone().with_structured(output.to_value());
        let is_about = |one: usize, other: usize| one.abs_diff(other) < 1000;
        assert!(is_about(output.size(), whole.size()) && is_about(whole.size(), 2 << 20));
        assert!(is_about(output.footprint(), 1 << 20) && is_about(whole.footprint(), 2 << 20));
        output.extras_mut(&mut |_| {}, &mut |kept| assert_eq!(*kept, json!({"size": 9})));
    }

    /// Nobody who reads an output can tell how it keeps its data.
    #[test]
    fn data_that_shares_its_text_is_like_any_other() {
        let shared = file("a\nb\n");
        let whole = shared.clone().with_structured(json!({"content": "a\nb\n", "size": 9}));
        assert_eq!((&shared, shared.to_value()), (&whole, whole.to_value()));
        assert_eq!(serde_json::to_string(&shared).unwrap(), serde_json::to_string(&whole).unwrap());
        assert_eq!(shared.to_text(), "a\nb\n[lines 1 to 2 of 3]");
        assert_ne!(shared, file("a\nc\n"));
        assert_ne!(shared, ToolOutput::parts(shared.content.clone()));
        let mut redacted = shared;
        redacted.content[0] = Content::text("[redacted]");
        assert_eq!(redacted.structured().unwrap()["content"], "[redacted]");
    }
}
