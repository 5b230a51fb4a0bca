//! Keeps secrets out of what calls show: results, events, logs (V5, PO-7, I15).
//!
//! ```text
//!   text ─┬─► registered secrets, in every usual spelling ─┐
//!         └─► patterns of common tokens ───────────────────┴─► spans, merged ─► [redacted], [redacted: github token]
//!             (not in results, by default)
//! ```
//!
//! Results leave out the patterns, because a model works with what a tool gave it: it passes a token on, and writes
//! back the file it has read. A mark that was given in place of a secret must not come back as an argument, so the
//! session keeps which marks it was given ([`GivenMarks`]).
//!
//! A pass takes time linear in the text. What a handler receives is never changed.

mod finder;
mod marks;
mod pass;
mod patterns;
mod secrets;
mod spans;
mod spelling;
mod stream;
mod value;
mod whole;
mod words;

pub use marks::{GivenMarks, Marks};
pub use secrets::SecretError;
pub use stream::Stream;

use pass::Pass;
use secrets::Secrets;
use spans::Spans;
use std::{borrow::Cow, fmt, sync::Arc};

/// Replaces secrets in texts and data by `[redacted]`. A value; cheap to clone.
///
/// It finds *registered* secrets, as they are and as they look inside JSON, URLs and base64, and *patterns* of common
/// tokens: keys of AWS, Google, Stripe, OpenAI and Anthropic, tokens of GitHub, GitLab and Slack, JSON web tokens,
/// `Authorization` values, private keys, passwords in URLs and in assignments such as `password=…`. A pattern names
/// the kind of token: `[redacted: github token]`. An engine without a redactor pays nothing.
///
/// An engine replaces registered secrets everywhere, and patterns in what is recorded and shown: events, logs, spans
/// and questions' events. Results keep what looks like a token, because the model must be able to use it, unless
/// [`patterns_in_results`](Self::patterns_in_results) is set.
///
/// Redacting twice gives the same result as redacting once. A text without secrets is not copied.
///
/// # Examples
/// ```
/// use toolyard_redact::Redactor;
/// let redactor = Redactor::standard().with_secret("correct horse")?;
/// assert_eq!(redactor.text("it is 'correct horse'"), "it is '[redacted]'");
/// assert_eq!(redactor.text("postgres://ada:swordfish@db/x"), "postgres://ada:[redacted: url password]@db/x");
/// assert_eq!(redactor.text("nothing here"), "nothing here");
/// # Ok::<(), toolyard_redact::SecretError>(())
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: bool,
    /// Whether patterns apply to results for the model too.
    in_results: bool,
    secrets: Option<Arc<Secrets>>,
}

impl Redactor {
    /// Makes a redactor that knows no pattern and no secret yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a redactor that knows the patterns of common tokens.
    pub fn standard() -> Self {
        patterns::prepare();
        Self { patterns: true, ..Self::default() }
    }

    /// Adds a secret.
    ///
    /// # Errors
    /// [`SecretError`] for a secret that cannot be told from other text, or is too long.
    pub fn with_secret(self, secret: impl AsRef<str>) -> Result<Self, SecretError> {
        self.with_secrets([secret])
    }

    /// Adds secrets.
    ///
    /// # Errors
    /// Those of [`with_secret`](Self::with_secret).
    pub fn with_secrets<S: AsRef<str>>(
        self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, SecretError> {
        let mut known = self.secrets.as_deref().map(Secrets::plain).unwrap_or_default();
        known.extend(secrets.into_iter().map(|secret| secret.as_ref().into()));
        Ok(Self { secrets: Secrets::of(known)?.map(Arc::new), ..self })
    }

    /// Whether patterns also apply to results, so that the model never sees what looks like a token. It can then
    /// neither use a token that a tool gave it, nor change a file that has one in it. Off by default (PO-7).
    pub fn patterns_in_results(mut self, wanted: bool) -> Self {
        self.in_results = wanted;
        self
    }

    /// The redactor of results, and of whatever else a model has to work with; `None` if it has nothing to look for in
    /// them.
    pub fn for_results(&self) -> Option<Self> {
        if self.patterns && self.in_results { Some(self.clone()) } else { self.registered() }
    }

    /// The same redactor without patterns; `None` if it has no registered secrets.
    ///
    /// Used for approval requests: a pattern may take out more than a token, such as a command between the markers of
    /// a private key, and nothing that would run may be hidden from the person asked.
    ///
    /// # Examples
    /// ```
    /// use toolyard_redact::Redactor;
    /// assert!(Redactor::standard().registered().is_none());
    /// ```
    pub fn registered(&self) -> Option<Self> {
        let secrets = self.secrets.clone()?;
        Some(Self { patterns: false, in_results: false, secrets: Some(secrets) })
    }

    /// Whether it has anything to look for.
    ///
    /// # Examples
    /// ```
    /// use toolyard_redact::Redactor;
    /// assert!(!Redactor::new().finds_something() && Redactor::standard().finds_something());
    /// ```
    pub fn finds_something(&self) -> bool {
        self.patterns || self.secrets.is_some()
    }

    /// Redacts a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Pass::of(self).text(text)
    }

    /// The spans to redact.
    fn spans(&self, text: &str) -> Spans {
        let mut spans = self.secret_spans(text);
        if self.patterns {
            patterns::find(text, &mut spans);
        }
        spans.without_marks(text)
    }

    fn secret_spans(&self, text: &str) -> Spans {
        let mut spans = Spans::default();
        if let Some(secrets) = &self.secrets {
            secrets.find(text, &mut spans);
        }
        spans
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = self.secrets.as_ref().map_or(0, |secrets| secrets.len());
        f.debug_struct("Redactor").field("patterns", &self.patterns).field("secrets", &secrets).finish()
    }
}

#[cfg(test)]
mod tests;
