//! Arguments and results in spans, which an embedder has to enable.

use std::borrow::Cow;
use toolyard_core::{Arguments, CallError, ToolOutput};
use toolyard_redact::Redactor;

/// How much of one text a span shows. Events have all of it.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// Whether spans carry arguments and results, and the redactor for them.
#[derive(Debug, Default)]
pub(crate) struct Content {
    wanted: bool,
    redactor: Option<Redactor>,
}

impl Content {
    pub(crate) fn new(wanted: bool, redactor: Option<Redactor>) -> Self {
        Self { wanted, redactor }
    }

    /// The arguments of a call as its span shows them; `None` if it does not.
    pub(crate) fn arguments(&self, arguments: &Arguments) -> Option<String> {
        self.wanted.then(|| self.redacted(&arguments.to_string()).into_owned())
    }

    /// The result of a call as its span shows it; `None` if it does not.
    pub(crate) fn result(&self, status: &Result<ToolOutput, Box<CallError>>) -> Option<String> {
        self.wanted.then(|| match status {
            Ok(output) => self.redacted(&output.to_text()).into_owned(),
            Err(error) => self.redacted(&error.to_text()).into_owned(),
        })
    }

    /// The description of a tool as its span shows it.
    pub(crate) fn description<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redacted(text)
    }

    /// Redacts and shortens a text. All content of spans passes through here.
    fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Redacted before it is cut: half a secret would not be found.
        let text = self.redactor.as_ref().map_or(Cow::Borrowed(text), |redactor| redactor.text(text));
        match text.len() {
            0..=SHOWN_BYTES_MAX => text,
            bytes => {
                let kept = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
                Cow::Owned(format!("{kept}… ({} more bytes)", bytes - kept.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OB-4: texts in spans are bounded, and cut between characters.
    #[test]
    fn long_texts_are_cut() {
        let content = Content::new(true, None);
        assert_eq!(content.redacted("short"), "short");
        let long = "ä".repeat(SHOWN_BYTES_MAX);
        let shown = content.redacted(&long);
        assert!(shown.ends_with("ä… (16384 more bytes)"), "{}", &shown[shown.len() - 40..]);
    }

    /// OB-4, I15: texts in spans contain no secret, not even a part of one at the cut.
    #[test]
    fn secrets_are_not_shown() {
        let redactor = Redactor::new().with_secret("correct horse").unwrap();
        let content = Content::new(true, Some(redactor));
        let text = format!("{}correct horse", "x".repeat(SHOWN_BYTES_MAX - 4));
        assert!(!content.redacted(&text).contains("corr"));
    }

    /// OB-4: by default a span has no content of the call.
    #[test]
    fn content_is_opt_in() {
        assert_eq!(Content::default().arguments(&Arguments::from("{}")), None);
    }
}
