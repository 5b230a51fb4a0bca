//! The marks that replace secrets.

use super::patterns::KINDS;
use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Value;
use std::sync::{
    LazyLock,
    atomic::{AtomicU32, Ordering},
};

/// The mark that replaces a secret of unknown kind.
const MARK: &str = "[redacted]";

/// Finds the marks in a text that has been redacted.
pub(super) static IN_TEXT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[redacted(?:: [a-z ]{1,30})?\]").expect("the pattern is valid"));

/// Every mark there is: the one without a kind, then one per kind.
static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let kinds = KINDS.iter().map(|kind| mark(Some(kind)));
    std::iter::once(mark(None)).chain(kinds).collect()
});

static FINDER: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::new(&*ALL).expect("there are few marks, and they are short"));

/// The mark that replaces a secret of this kind.
pub(super) fn mark(kind: Option<&'static str>) -> String {
    kind.map_or_else(|| MARK.to_owned(), |kind| format!("[redacted: {kind}]"))
}

/// Whether a text is nothing but a mark.
pub(super) fn is_mark(text: &str) -> bool {
    IN_TEXT.find(text).is_some_and(|found| found.len() == text.len())
}

/// A set of marks: which ones something was given in place of secrets.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::ToolOutput;
/// use toolyard_redact::{GivenMarks, Redactor};
/// let redactor = Redactor::new().with_secret("correct horse")?;
/// let (given, mut output) = (GivenMarks::default(), ToolOutput::text("it is correct horse"));
/// given.add(redactor.output(&mut output));
/// assert_eq!(given.get().first_in(&json!({"path": "[redacted]"})), Some("[redacted]"));
/// assert_eq!(given.get().first_in(&json!({"path": "a.txt"})), None);
/// # Ok::<(), toolyard_redact::SecretError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// The set of the mark of this kind.
    pub(super) fn of(kind: Option<&'static str>) -> Self {
        let at = kind.map_or(0, |kind| KINDS.iter().position(|known| *known == kind).map_or(0, |at| at + 1));
        Self(1 << at)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first of these marks that is in the data, in a text or in a field's name.
    pub fn first_in(self, value: &Value) -> Option<&'static str> {
        match value {
            Value::String(text) => self.first_in_text(text),
            Value::Array(items) => items.iter().find_map(|item| self.first_in(item)),
            Value::Object(fields) => fields
                .iter()
                .find_map(|(name, value)| self.first_in_text(name).or_else(|| self.first_in(value))),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn first_in_text(self, text: &str) -> Option<&'static str> {
        let found = FINDER.find_iter(text).map(|found| found.pattern().as_usize());
        found.into_iter().find(|at| self.0 >> at & 1 == 1).map(|at| ALL[at].as_str())
    }
}

/// The marks that somebody was given so far. Marks are added from any thread; see [`Marks`] for an example.
#[derive(Debug, Default)]
pub struct GivenMarks(AtomicU32);

impl GivenMarks {
    /// Adds marks that were given.
    pub fn add(&self, marks: Marks) {
        if !marks.is_empty() {
            self.0.fetch_or(marks.0, Ordering::Relaxed);
        }
    }

    /// The marks given so far.
    pub fn get(&self) -> Marks {
        Marks(self.0.load(Ordering::Relaxed))
    }
}
