//! Keeps secrets out of what calls show: results, events, logs (V5, I15).
//!
//! ```text
//!   text ─┬─► registered secrets, in every form they take ─┐
//!         └─► patterns of common tokens ───────────────────┴─► spans, merged ─► [redacted], [redacted: github token]
//! ```
//!
//! One pass takes time in proportion to the text. What a handler is given is never touched.

mod patterns;
mod secrets;
mod spans;
mod stream;
mod value;
mod whole;
mod words;

pub use secrets::SecretError;
pub(crate) use stream::Stream;

use secrets::Secrets;
use spans::Spans;
use std::{borrow::Cow, fmt, sync::Arc};

/// How often a text is looked at again after something was taken out of it. A token that stands right behind a secret
/// is seen as one only when that is gone; a text in which more than this follow one another does not occur.
const PASSES_MAX: usize = 8;

/// Finds secrets in texts and data and puts `[redacted]` in their place. A value; cheap to clone.
///
/// It knows *registered* secrets, as they are and as they look inside JSON, URLs and base64; and *patterns* of tokens
/// that everybody uses: keys of AWS, Google, Stripe, OpenAI and Anthropic, tokens of GitHub, GitLab and Slack, JSON web
/// tokens, `Authorization` values, private keys, passwords in URLs and in assignments such as `password=…`. Patterns
/// name what was there: `[redacted: github token]`. An engine without one pays nothing.
///
/// To redact twice is to redact once. What is nowhere found is not copied.
///
/// # Examples
/// ```
/// use toolyard::Redactor;
/// let redactor = Redactor::standard().with_secret("correct horse")?;
/// assert_eq!(redactor.text("it is 'correct horse'"), "it is '[redacted]'");
/// assert_eq!(redactor.text("postgres://ada:swordfish@db/x"), "postgres://ada:[redacted: url password]@db/x");
/// assert_eq!(redactor.text("nothing here"), "nothing here");
/// # Ok::<(), toolyard::SecretError>(())
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: bool,
    secrets: Option<Arc<Secrets>>,
}

impl Redactor {
    /// One that knows no pattern and no secret yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that knows the patterns of common tokens.
    pub fn standard() -> Self {
        patterns::prepare();
        Self { patterns: true, secrets: None }
    }

    /// The same with this secret too.
    ///
    /// # Errors
    /// [`SecretError`] for a secret that cannot be told from other text, or is too long.
    pub fn with_secret(self, secret: impl AsRef<str>) -> Result<Self, SecretError> {
        self.with_secrets([secret])
    }

    /// The same with these secrets too.
    ///
    /// # Errors
    /// As [`with_secret`](Self::with_secret).
    pub fn with_secrets<S: AsRef<str>>(
        self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, SecretError> {
        let mut known = self.secrets.as_deref().map(Secrets::plain).unwrap_or_default();
        known.extend(secrets.into_iter().map(|secret| secret.as_ref().into()));
        Ok(Self { secrets: Secrets::of(known)?.map(Arc::new), ..self })
    }

    /// One that knows the registered secrets of this one and no pattern; `None` where there are none.
    ///
    /// For whom is asked whether a call may run: what a pattern takes out may be more than a token, such as a command
    /// between the marks of a private key, and nothing that runs is to be hidden from them.
    pub(crate) fn registered(&self) -> Option<Self> {
        let secrets = self.secrets.clone()?;
        Some(Self { patterns: false, secrets: Some(secrets) })
    }

    /// Whether it knows anything to look for.
    pub(crate) fn finds_something(&self) -> bool {
        self.patterns || self.secrets.is_some()
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Self::until_clean(text, |text| self.spans(text))
    }

    /// The text without registered secrets, for data in which a pattern says nothing.
    fn data<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Self::until_clean(text, |text| self.secret_spans(text).without_marks(text))
    }

    fn until_clean<'a>(text: &'a str, spans: impl Fn(&str) -> Spans) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for _ in 0..PASSES_MAX {
            let found = spans(&shown);
            if found.is_empty() {
                break;
            }
            shown = Cow::Owned(found.replace(&shown, 0..shown.len()));
        }
        shown
    }

    /// Where secrets are.
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
