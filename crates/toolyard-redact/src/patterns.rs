//! Tokens that are recognised by their shape.
//!
//! Except for private keys, a pattern matches within one line, and none has an upper length that would leave the rest
//! of a token. Matching takes time linear in the text, whatever it contains. Where shape alone would match prose or
//! code, a pattern also requires that the value looks random.

use super::{spans::Spans, words::Words};
use regex::Regex;
use std::sync::LazyLock;

/// The kinds of tokens, as marks name them.
pub(super) const KINDS: [&str; 13] = [
    "private key",
    "aws key",
    "aws secret",
    "github token",
    "gitlab token",
    "slack token",
    "stripe key",
    "google key",
    "api key",
    "jwt",
    "authorization",
    "url password",
    "password",
];

/// A pattern. The secret is its first group, or the whole match if it has no group.
struct Pattern {
    kind: &'static str,
    /// Every match contains one of these, ignoring case.
    words: &'static [&'static str],
    regex: Regex,
    is_secret: fn(&str) -> bool,
}

/// What connects a name with its value: quotes, also those of JSON inside JSON, and the assignment sign.
const ASSIGNED: &str = r#"\\{0,3}["']?[ \t]*(?:=>|:=|=|:)[ \t]*\\{0,3}["']?"#;

/// Names whose values are secret. `PWD` and `OLDPWD` are directories.
const SECRET_NAME: &str = r"(?i-u:pass(?:word|wd|phrase)|(?-i:pwd|Pwd|[_-]PWD)|secret|api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|(?:auth|access|refresh|bearer|session|api)[_-]?token|credentials?)";

/// Every match of [`SECRET_NAME`] contains one of these.
const SECRET_WORDS: &[&str] = &[
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "access",
    "private",
    "token",
    "credential",
];

/// Tells which patterns are worth trying.
static WORDS: LazyLock<Words> = LazyLock::new(|| Words::of(PATTERNS.iter().map(|pattern| pattern.words)));

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let authorization = format!(r"(?i-u:\bauthorization){ASSIGNED}");
    vec![
        pattern("private key", &["private key"], PRIVATE_KEY, any),
        pattern(
            "aws key",
            &["akia", "asia", "abia", "acca"],
            r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
            any,
        ),
        pattern(
            "aws secret",
            &["aws", "secretaccess", "secret_access"],
            &format!(
                r"(?i-u:aws[a-z0-9_.-]{{0,20}}(?:secret|key)[a-z0-9_.-]{{0,20}}|secret_?access_?key){ASSIGNED}([A-Za-z0-9/+]{{40}})(?:[^A-Za-z0-9/+]|$)"
            ),
            any,
        ),
        pattern(
            "github token",
            &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
            r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
            any,
        ),
        pattern(
            "gitlab token",
            &[
                "glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "gloas-", "glagent-", "glft-", "glimt-",
                "glsoat-",
            ],
            r"gl(?:pat|dt|ptt|rt|cbt|oas|agent|ft|imt|soat)-[A-Za-z0-9_.-]{20,}",
            any,
        ),
        pattern("slack token", &["xox", "xapp-"], r"(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{10,}", random),
        pattern(
            "stripe key",
            &["k_live_", "k_test_", "whsec_"],
            r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,}",
            any,
        ),
        pattern("google key", &["aiza", "ya29."], r"AIza[A-Za-z0-9_-]{35,}|ya29\.[A-Za-z0-9_-]{20,}", any),
        pattern("api key", &["sk-"], r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}", random),
        pattern("jwt", &["eyj"], r"eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*", any),
        pattern(
            "authorization",
            &["authorization"],
            &format!(
                r#"{authorization}(?i-u:basic|bearer|token|digest|negotiate|apikey)[ \t]+([^ \t\r\n"'\\,;]{{4,}})"#
            ),
            any,
        ),
        pattern(
            "authorization",
            &["authorization"],
            &format!(r#"{authorization}([^ \t\r\n"'\\,;]{{6,}})"#),
            random,
        ),
        pattern("authorization", &["bearer"], r"(?i-u:\bbearer)[ \t]+([A-Za-z0-9._~+/=-]{8,})", random),
        pattern(
            "url password",
            &["://"],
            r#"(?i-u:[a-z][a-z0-9+.-]{1,20})://[^ \t\r\n/?#"'@:\\]{0,100}:([^ \t\r\n/?#"'@\\]+)@"#,
            any,
        ),
        pattern(
            "password",
            SECRET_WORDS,
            &format!(
                r#"{SECRET_NAME}\\{{0,3}}["']?[ \t]*(?:=>|:=|=|:)[ \t]*\\{{0,3}}["']([^"'\\\r\n]+)\\{{0,3}}["']"#
            ),
            is_real_value,
        ),
        pattern(
            "password",
            SECRET_WORDS,
            &format!(r#"{SECRET_NAME}=([^ \t\r\n"'\\,;&(<\[{{}}\])$*]+){END}"#),
            is_real_value,
        ),
        pattern(
            "password",
            SECRET_WORDS,
            &format!(
                r#"{SECRET_NAME}["']?[ \t]*(?:=>|:=|=|:)[ \t]*([^ \t\r\n"'\\,;&(<\[{{}}\])$*]{{6,}}){END}"#
            ),
            is_random_value,
        ),
    ]
});

/// The end of a value, so that a value followed by more code does not match.
const END: &str = r#"(?:[ \t\r\n"'\\,;&)}\]]|$)"#;

/// An armoured private key, even if its end is cut off.
const PRIVATE_KEY: &str = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)";

static KEY_BEGINS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
static KEY_ENDS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
static SECRET_NAMES: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!(r"^(?i-u:[a-z0-9_.-]*){SECRET_NAME}$")));

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("every pattern is valid, as the tests show")
}

fn pattern(
    kind: &'static str,
    words: &'static [&'static str],
    regex: &str,
    is_secret: fn(&str) -> bool,
) -> Pattern {
    Pattern { kind, words, regex: compiled(regex), is_secret }
}

/// The kinds of all patterns.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|pattern| pattern.kind)
}

/// Compiles the patterns ahead of the first call, because that takes some milliseconds.
pub(super) fn prepare() {
    LazyLock::force(&WORDS);
    LazyLock::force(&SECRET_NAMES);
}

/// Adds the spans of all tokens.
pub(super) fn find(text: &str, spans: &mut Spans) {
    for pattern in WORDS.seen_in(text).map(|at| &PATTERNS[at]) {
        if pattern.regex.captures_len() == 1 {
            let found = pattern.regex.find_iter(text).filter(|found| (pattern.is_secret)(found.as_str()));
            found.for_each(|found| spans.add(found.range(), Some(pattern.kind)));
        } else {
            let found = pattern.regex.captures_iter(text).filter_map(|found| found.get(1));
            let found = found.filter(|found| (pattern.is_secret)(found.as_str()));
            found.for_each(|found| spans.add(found.range(), Some(pattern.kind)));
        }
    }
}

/// The kind of a value with this name, if the name says that it is secret.
pub(super) fn named(name: &str, value: &str) -> Option<&'static str> {
    (SECRET_NAMES.is_match(name) && is_real_value(value)).then_some("password")
}

/// Whether a private key starts in the text and does not end in it.
pub(super) fn key_is_open(text: &str) -> bool {
    let begun = KEY_BEGINS.find_iter(text).last();
    begun.is_some_and(|begun| !KEY_ENDS.is_match(&text[begun.end()..]))
}

/// Where the end line of a private key ends.
pub(super) fn key_end(text: &str) -> Option<usize> {
    KEY_ENDS.find(text).map(|end| end.end())
}

fn any(_: &str) -> bool {
    true
}

/// Whether a value is more than a placeholder, the name of a type, an option of a library, a path or an address.
fn is_real_value(value: &str) -> bool {
    const NOTHING: &[&str] = &[
        "null",
        "none",
        "nil",
        "true",
        "false",
        "undefined",
        "string",
        "str",
        "password",
        "secret",
        "required",
        "optional",
        "include",
        "omit",
        "same-origin",
    ];
    let value = value.trim();
    !value.is_empty()
        && !NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word))
        && !is_filled_in_later(value)
        && !is_place(value)
}

/// Whether a value is a template, or a run of one character that hides the real one.
fn is_filled_in_later(value: &str) -> bool {
    let is_between = |start: &str, end: &str| value.starts_with(start) && value.ends_with(end);
    let first = value.chars().next();
    let is_hidden =
        first.is_some_and(|first| "*x.•-_".contains(first) && value.chars().all(|char| char == first));
    is_between("${", "}")
        || is_between("{{", "}}")
        || is_between("<", ">")
        || is_between("%(", ")s")
        || is_hidden
}

/// Whether a value is a path or an address. A password in an address has a pattern of its own.
fn is_place(value: &str) -> bool {
    let rest = ["~/", "./", "../"].iter().find_map(|start| value.strip_prefix(start));
    let first = || value.strip_prefix('/').map(|path| path.split('/').next().unwrap_or_default());
    let is_directory = |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_lowercase());
    value.contains("://") || rest.is_some() || first().is_some_and(is_directory)
}

fn is_random_value(value: &str) -> bool {
    random(value) && is_real_value(value)
}

/// Whether a value looks random: words of a language have no digits, and no capitals inside.
fn random(value: &str) -> bool {
    let bytes = value.as_bytes();
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let mixed = bytes.windows(2).filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    bytes.iter().any(u8::is_ascii_alphabetic) && has_digit || mixed.count() >= 2
}
