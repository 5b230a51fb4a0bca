//! Registered secrets, as they are searched for: in forms that stand in a text as they are, and by what the text spells.

use super::{
    finder::Finder,
    marks,
    spans::Spans,
    spelling::{self, Reading},
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use std::{collections::BTreeSet, fmt::Write as _, ops::Range, sync::Arc};
use toolyard_core::json_escape;

/// Shorter texts occur everywhere.
const SECRET_BYTES_MIN: usize = 6;
/// Longer than any key or token.
const SECRET_BYTES_MAX: usize = 16 * 1024;

/// Why a secret cannot be registered. It never contains the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It is too short.
    #[error(
        "a secret of {bytes} bytes is too short to be redacted, because texts that short occur everywhere: use at least {SECRET_BYTES_MIN} bytes"
    )]
    TooShort {
        /// Its length.
        bytes: usize,
    },
    /// It is too long.
    #[error("a secret of {bytes} bytes is too long to be redacted: use at most {SECRET_BYTES_MAX} bytes")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is part of the mark that replaces secrets.
    #[error("a secret that is part of the word 'redacted' cannot be told apart from its placeholder")]
    Mark,
    /// All secrets together are too large.
    #[error("too many secrets to be redacted")]
    TooMany,
}

/// How many bytes the spelling of one may take, such as `\\\\u00e9`.
const SPELLED_BYTES_MAX: usize = 16;
/// How much beyond the longest spelling is held back of a text that arrives in pieces.
const HELD_BYTES_MAX: usize = 4096;

/// The registered secrets, ready to be searched for.
pub(super) struct Secrets {
    plain: BTreeSet<Arc<str>>,
    /// All forms of all secrets, sorted.
    forms: Vec<Box<str>>,
    /// Whether any form starts with this byte.
    begins: [bool; 256],
    longest: usize,
    finder: AhoCorasick,
    /// The secrets by what a text spells.
    spelled: Option<Finder>,
    /// The same for what it spells as base64.
    encoded: Option<Finder>,
}

impl Secrets {
    /// Compiles these secrets; `None` if there are none.
    pub(super) fn of(plain: BTreeSet<Arc<str>>) -> Result<Option<Self>, SecretError> {
        plain.iter().try_for_each(|secret| check(secret))?;
        let forms: BTreeSet<String> = plain.iter().flat_map(|secret| forms_of(secret)).collect();
        if forms.is_empty() {
            return Ok(None);
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&forms)
            .map_err(|_| SecretError::TooMany)?;
        let mut begins = [false; 256];
        forms.iter().filter_map(|form| form.bytes().next()).for_each(|byte| begins[byte as usize] = true);
        let longest = plain.iter().map(|secret| secret.len() * SPELLED_BYTES_MAX).max().unwrap_or_default();
        let readings = |secret: &Arc<str>| [Reading::Text.all(secret), Reading::Text.literal(secret)];
        let spelled = plain.iter().flat_map(readings);
        let encoded = plain.iter().flat_map(|secret| encoded(secret)).map(|form| Reading::Base64.all(&form));
        let (spelled, encoded) = (finder_of(Reading::Text, spelled), finder_of(Reading::Base64, encoded));
        let forms = forms.into_iter().map(String::into_boxed_str).collect();
        Ok(Some(Self { plain, forms, begins, longest, finder, spelled, encoded }))
    }

    /// The secrets as they were registered.
    pub(super) fn plain(&self) -> BTreeSet<Arc<str>> {
        self.plain.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.plain.len()
    }

    /// The length of the longest form.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Adds the spans of all forms. Overlapping matches are all added, because what is left of one beside another is
    /// still part of a secret.
    pub(super) fn find(&self, text: &str, spans: &mut Spans) {
        for found in self.finder.find_overlapping_iter(text) {
            spans.add(found.range(), None);
        }
        self.find_spelled(text, &mut |found| spans.add(found, None));
    }

    /// Passes on where a text spells a secret. Returns how many steps that took.
    pub(super) fn find_spelled(&self, text: &str, found: &mut dyn FnMut(Range<usize>)) -> usize {
        // Without escapes, a text spells what it is.
        let is_spelled = text.bytes().any(|byte| byte == b'+' || spelling::starts_escape(byte));
        let spelled = self.spelled.as_ref().filter(|_| is_spelled);
        spelled.into_iter().chain(&self.encoded).map(|finder| finder.find(text, found)).sum()
    }

    /// Where the longest suffix starts that may be the start of a secret; the text's length if there is none.
    pub(super) fn partial_match_start(&self, text: &str) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let bytes = text.as_bytes();
        let begun = |at: &usize| {
            self.begins[bytes[*at] as usize] && text.is_char_boundary(*at) && self.begins_with(&text[*at..])
        };
        let as_it_is = (from..text.len()).find(begun).unwrap_or(text.len());
        let finders = self.spelled.iter().chain(&self.encoded);
        let begun = finders.map(|finder| finder.partial_match_start(text)).fold(as_it_is, usize::min);
        // Backslashes and white space may go on without end.
        begun.max(text.floor_char_boundary(text.len().saturating_sub(self.longest + HELD_BYTES_MAX)))
    }

    /// Whether some form is longer than this and starts with it.
    fn begins_with(&self, begin: &str) -> bool {
        let at = self.forms.partition_point(|form| form.as_ref() <= begin);
        self.forms.get(at).is_some_and(|form| form.starts_with(begin))
    }
}

fn check(secret: &str) -> Result<(), SecretError> {
    match secret.len() {
        bytes if bytes < SECRET_BYTES_MIN => Err(SecretError::TooShort { bytes }),
        bytes if bytes > SECRET_BYTES_MAX => Err(SecretError::TooLong { bytes }),
        _ if marks::mark(None).contains(secret) => Err(SecretError::Mark),
        _ => Ok(()),
    }
}

/// The forms of a secret: as it is, in JSON, in JSON inside JSON, in a URL, and in base64.
fn forms_of(secret: &str) -> Vec<String> {
    let json = escaped(secret);
    let mut forms = vec![
        secret.to_owned(),
        escaped(&json),
        json.replace('/', r"\/"),
        ascii_escaped(&json, |_| false),
        ascii_escaped(&json, |char| matches!(char, '<' | '>' | '&' | '\'')),
        percent(secret, false),
        percent(secret, true),
        percent(secret, false).replace("%20", "+"),
        json,
    ];
    for skip in 0..3 {
        forms.extend(base64(secret, skip));
    }
    forms
}

/// A finder of what is long enough to be told from other text.
fn finder_of(reading: Reading, secrets: impl Iterator<Item = Vec<u8>>) -> Option<Finder> {
    let secrets: BTreeSet<Vec<u8>> = secrets.filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
    Finder::of(reading, &secrets.into_iter().collect::<Vec<_>>())
}

/// The base64 of a secret, and of the JSON that has it in a string.
fn encoded(secret: &str) -> Vec<String> {
    let json = escaped(secret);
    [secret, &json].into_iter().flat_map(|text| (0..3).flat_map(move |skip| base64(text, skip))).collect()
}

/// The text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// The same JSON text with `\u` escapes for all that is not ASCII, and for characters that some writers escape too.
fn ascii_escaped(json: &str, also: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if char.is_ascii() && !also(char) {
            text.push(char);
            continue;
        }
        json_escape(char, &mut text).expect("writing to a string cannot fail");
    }
    text
}

fn percent(text: &str, lower: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => encoded.push(byte.into()),
            byte if lower => write!(encoded, "%{byte:02x}").expect("writing to a string cannot fail"),
            byte => write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    encoded
}

/// The part of the secret's base64 that is the same whatever surrounds it, if `skip` bytes, plus any multiple of
/// three, precede it. For `skip` 0 also the whole encoding, whose last character holds only if nothing follows.
fn base64(secret: &str, skip: usize) -> impl Iterator<Item = String> {
    let bytes: Vec<u8> = [0].repeat(skip).into_iter().chain(secret.bytes()).collect();
    // A character holds six bits; those at either edge also hold bits of neighbouring bytes.
    let (first, behind) = ((skip * 8).div_ceil(6), bytes.len() * 8 / 6);
    let encoded = [BASE64_STANDARD_NO_PAD.encode(&bytes), BASE64_URL_SAFE_NO_PAD.encode(&bytes)];
    let whole = encoded.clone().into_iter().filter(move |_| skip == 0);
    let inside = encoded.into_iter().map(move |text| text[first..behind].to_owned());
    inside.chain(whole)
}
