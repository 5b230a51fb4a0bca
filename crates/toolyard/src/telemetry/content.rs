//! Arguments and results in spans: only where an embedder asks for them.

use crate::{batch::Ending, redact::Redactor};
use std::borrow::Cow;
use toolyard_core::Arguments;

/// How much of one text a span shows. Traces are for looking at; events have the whole.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// Whether spans carry what calls say, and how it is shown.
#[derive(Debug, Default)]
pub(crate) struct Content {
    wanted: bool,
    redactor: Option<Redactor>,
}

impl Content {
    pub(crate) fn new(wanted: bool, redactor: Option<Redactor>) -> Self {
        Self { wanted, redactor }
    }

    /// The arguments of a call as a span shows them, if it does.
    pub(super) fn arguments(&self, arguments: &Arguments) -> Option<String> {
        self.wanted.then(|| self.shown(&arguments.to_string()).into_owned())
    }

    /// What the model is told of an end, if a span shows it.
    pub(super) fn result(&self, ending: &Ending) -> Option<String> {
        self.wanted.then(|| match &ending.status {
            Ok(output) => self.shown(&output.to_text()).into_owned(),
            Err(error) => self.shown(&error.to_text()).into_owned(),
        })
    }

    /// A text as it may leave the engine: the one way of content into spans.
    fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // As a whole: a secret that is cut in two is found in neither part.
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

    /// OB-4: what a span shows is bounded, and cut between characters.
    #[test]
    fn long_texts_are_cut() {
        let content = Content::new(true, None);
        assert_eq!(content.shown("short"), "short");
        let long = "ä".repeat(SHOWN_BYTES_MAX);
        let shown = content.shown(&long);
        assert!(shown.ends_with("ä… (16384 more bytes)"), "{}", &shown[shown.len() - 40..]);
    }

    /// OB-4, I15: what a span shows has no secret, at its cut neither.
    #[test]
    fn secrets_are_not_shown() {
        let redactor = Redactor::new().with_secret("correct horse").unwrap();
        let content = Content::new(true, Some(redactor));
        let text = format!("{}correct horse", "x".repeat(SHOWN_BYTES_MAX - 4));
        assert!(!content.shown(&text).contains("corr"));
    }

    /// OB-4: without a word nothing of a call's content is in its span.
    #[test]
    fn content_is_opt_in() {
        assert_eq!(Content::default().arguments(&Arguments::from("{}")), None);
    }
}
