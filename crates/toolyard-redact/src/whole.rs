//! Redaction of arguments, outputs, errors and events.

use super::{Redactor, marks::Marks, pass::Pass, value::owned};
use serde_json::Value;
use std::{borrow::Cow, error::Error, fmt, iter, sync::Arc};
use toolyard_core::{Arguments, CallError, Content, EventKind, ToolOutput, ToolSpec, event::CallDetails};

/// How many links of an error chain are checked. What lies deeper is cut off, because it is not checked.
const CAUSES_MAX: usize = 64;

impl Redactor {
    /// Redacts what a tool says of itself; returns the marks it now has in place of secrets. Its name stays.
    pub fn spec(&self, spec: &mut ToolSpec) -> Marks {
        let pass = Pass::of(self);
        pass.in_place(&mut spec.description);
        if let Some(schema) = &mut spec.input_schema
            && let Cow::Owned(shown) = pass.value(schema)
        {
            *schema = shown;
        }
        pass.marks()
    }

    /// Redacts an output; returns the marks it now has in place of secrets.
    pub fn output(&self, output: &mut ToolOutput) -> Marks {
        let pass = Pass::of(self);
        pass.output(output);
        pass.marks()
    }

    /// Redacts an error, including its cause; returns the marks it now has in place of secrets.
    pub fn error(&self, error: &mut CallError) -> Marks {
        let pass = Pass::of(self);
        pass.error(error);
        pass.marks()
    }

    /// The replacement of a cause that contains a secret or has more than [`CAUSES_MAX`] links; `None` for any other.
    #[cfg(test)]
    pub(crate) fn cause(&self, cause: &(dyn Error + 'static)) -> Option<Arc<dyn Error + Send + Sync>> {
        Pass::of(self).cause(cause)
    }

    /// Redacts arguments; returns the marks they now have in place of secrets. JSON text is also redacted as data,
    /// because JSON can write the same letter in more than one way.
    pub fn arguments(&self, arguments: &mut Arguments) -> Marks {
        let pass = Pass::of(self);
        pass.arguments(arguments);
        pass.marks()
    }

    /// Redacts what an event tells in the words of models and tools. Streamed output is redacted as a stream, and the
    /// arguments of a question where they are written out.
    pub fn event(&self, kind: &mut EventKind) {
        if let Some(details) = kind.details_mut() {
            Pass::of(self).details(details);
        }
        match kind {
            EventKind::InputInvalid(failure) | EventKind::Denied(failure) | EventKind::Failed(failure) => {
                Pass::of(self).in_place(&mut failure.message);
            }
            EventKind::ConfirmationRequested(request) => {
                request.projected_modifications.iter_mut().for_each(|text| Pass::of(self).in_place(text));
            }
            EventKind::ConfirmationResolved(resolution) => {
                let it = &mut **resolution;
                let texts = it.who.iter_mut().chain(&mut it.reason).chain(&mut it.projected_modifications);
                texts.for_each(|text| Pass::of(self).in_place(text));
            }
            _ => {}
        }
    }
}

impl Pass<'_> {
    /// Redacts what a tool tells of a call.
    fn details(&self, details: &mut CallDetails) {
        let texts = details.partial_output.iter_mut().chain(&mut details.command_executed);
        texts.chain(&mut details.files_modified).for_each(|text| self.in_place(text));
        if !details.metadata.is_empty() {
            let metadata = Value::Object(std::mem::take(&mut details.metadata));
            if let Value::Object(shown) = self.value(&metadata).into_owned() {
                details.metadata = shown;
            }
        }
    }

    /// Redacts an output.
    fn output(&self, output: &mut ToolOutput) {
        output.content.iter_mut().for_each(|part| self.content(part));
        output.extras_mut(&mut |text| self.in_place(text), &mut |value| {
            if let Cow::Owned(shown) = self.value(value) {
                *value = shown;
            }
        });
    }

    /// Redacts a part of an output.
    fn content(&self, part: &mut Content) {
        match part {
            Content::Text { text } => self.in_place(text),
            // A pattern would match the letters of an image only by chance.
            Content::Image { data, .. } => replace(data, owned(self.data(data))),
            _ => {}
        }
    }

    /// Redacts an error, including its cause.
    fn error(&self, error: &mut CallError) {
        self.in_place(&mut error.message);
        if let Some(advice) = owned(self.text(&error.advice)) {
            error.advice = Cow::Owned(advice);
        }
        for misfit in &mut error.validation_errors {
            self.in_place(&mut misfit.pointer);
            self.in_place(&mut misfit.message);
        }
        if let Some(output) = error.output_mut() {
            self.output(output);
        }
        let shown = error.source.as_ref().and_then(|source| self.cause(source.as_ref()));
        replace(&mut error.source, shown.map(Some));
        if let Some(last) = &mut error.last_error {
            self.error(last);
        }
    }

    /// The replacement of a cause that contains a secret or has more than [`CAUSES_MAX`] links; `None` for any other.
    fn cause(&self, cause: &(dyn Error + 'static)) -> Option<Arc<dyn Error + Send + Sync>> {
        let chain = || iter::successors(Some(cause), |link| (*link).source());
        let links = || chain().take(CAUSES_MAX);
        let is_secret = |text: String| matches!(self.text(&text), Cow::Owned(_));
        let is_checked = chain().nth(CAUSES_MAX).is_none();
        if is_checked && !links().any(|link| is_secret(link.to_string())) && !is_secret(format!("{cause:?}"))
        {
            return None;
        }
        let texts: Vec<String> = links().map(|link| self.text(&link.to_string()).into_owned()).collect();
        let chain = texts.into_iter().rev().fold(None, |below: Option<Box<RedactedCause>>, text| {
            let below = below.map(|below| below as Box<dyn Error + Send + Sync>);
            Some(Box::new(RedactedCause { text, below }))
        });
        chain.map(|shown| Arc::from(shown as Box<dyn Error + Send + Sync>))
    }

    /// Redacts arguments. JSON text is also redacted as data, because JSON can write the same letter in more than one
    /// way.
    fn arguments(&self, arguments: &mut Arguments) {
        match arguments {
            Arguments::Json(value) => {
                if let Cow::Owned(shown) = self.value(value) {
                    *value = Arc::new(shown);
                }
            }
            Arguments::Text(text) => {
                let data = serde_json::from_str::<Value>(text).ok();
                let data = data.as_ref().and_then(|data| match self.value(data) {
                    Cow::Owned(shown) => Some(shown.to_string()),
                    Cow::Borrowed(_) => None,
                });
                match data {
                    Some(data) => *text = self.text(&data).into(),
                    None => replace(text, owned(self.text(text)).map(Into::into)),
                }
            }
        }
    }

    fn in_place(&self, text: &mut String) {
        replace(text, owned(self.text(text)));
    }
}

fn replace<T>(place: &mut T, with: Option<T>) {
    if let Some(with) = with {
        *place = with;
    }
}

/// A cause whose text was redacted.
struct RedactedCause {
    text: String,
    below: Option<Box<dyn Error + Send + Sync>>,
}

impl fmt::Display for RedactedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for RedactedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.below.as_ref() {
            Some(below) => write!(f, ": {below:?}"),
            None => Ok(()),
        }
    }
}

impl Error for RedactedCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.below.as_deref().map(|below| below as &(dyn Error + 'static))
    }
}
