//! Secrets in the spellings of usual encoders, in all their surroundings.

use crate::{Redactor, Stream, secrets::Secrets};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, Engine as _};
use std::{collections::BTreeSet, fmt::Write as _};

/// Secrets with characters that encoders escape, or that look like escapes themselves.
const SECRETS: &[&str] = &[
    "p\"w/ö <&> 7\\\n!",
    "a+b/c=d+e==f",
    "abc%sure%41zz",
    "\\\\server\\token\\new",
    "naïve café für 5 €",
    "it's \"quoted\" `so`",
    "tab\tline\nreturn\rbell\u{8}\u{c}",
    "sprout🌱key🔑",
    "<script>&amp;</script>",
    "user:pa ss@host?a=b#c",
    "nancy\\n\\t\\u0041\\x41",
    "{\"a\":\"b\\\"c\",\"d\":[1]}",
    "0123456789abcdef-plain",
    "~!*'();:@&=+$,/?#[]",
];

fn percent(text: &str, kept: &str, upper: bool) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let char = char::from(byte);
        if char.is_ascii_alphanumeric() || byte.is_ascii() && kept.contains(char) {
            all.push(char);
        } else if upper {
            write!(all, "%{byte:02X}").unwrap();
        } else {
            write!(all, "%{byte:02x}").unwrap();
        }
        all
    })
}

/// `\u` escapes for the characters that are chosen.
fn unicode(text: &str, chosen: impl Fn(char) -> bool, upper: bool) -> String {
    text.chars().fold(String::new(), |mut all, char| {
        if !chosen(char) {
            all.push(char);
            return all;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            if upper { write!(all, "\\u{unit:04X}") } else { write!(all, "\\u{unit:04x}") }.unwrap();
        }
        all
    })
}

fn json(text: &str) -> String {
    let text = serde_json::Value::from(text).to_string();
    text[1..text.len() - 1].to_owned()
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

fn wrapped(text: &str, width: usize, end: &str) -> String {
    let lines: Vec<_> =
        text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join(end)
}

/// A secret as usual encoders write it, with the encoder.
fn spellings(secret: &str) -> Vec<(String, String)> {
    let json1 = json(secret);
    let json2 = json(&json1);
    let odd = |char: char| !char.is_ascii_alphanumeric();
    let mut all = vec![
        ("as it is", secret.to_owned()),
        ("quote", percent(secret, "_.-~/", true)),
        ("quote_plus", percent(secret, "_.-~ ", true).replace(' ', "+")),
        ("encodeURIComponent", percent(secret, "-_.!~*'()", true)),
        ("encodeURI", percent(secret, "-_.!~*'();/?:@&=+$,#", true)),
        ("URLEncoder", percent(secret, ".-*_ ", true).replace(' ', "+")),
        ("lower-case percent", percent(secret, "-_.~", false)),
        ("percent twice", percent(&percent(secret, "-_.~", true), "", true)),
        ("JSON", json1.clone()),
        ("JSON in JSON", json2.clone()),
        ("JSON in JSON in JSON", json(&json2)),
        ("JSON four times", json(&json(&json2))),
        ("JSON with \\/", json1.replace('/', "\\/")),
        ("JSON with \\/ in JSON", json(&json1.replace('/', "\\/"))),
        ("\\u of all", unicode(secret, |_| true, false)),
        ("\\U of all", unicode(secret, |_| true, true)),
        ("\\u002B", unicode(secret, odd, true)),
        ("\\u00E9", unicode(&json1, |char| !char.is_ascii(), true)),
        ("\\u00e9 in JSON", json(&unicode(&json1, |char| !char.is_ascii(), false))),
        ("JSON in a URL", percent(&json1, "-_.~", true)),
        ("HTML", html(secret)),
        ("JSON in HTML", html(&json1)),
    ]
    .into_iter()
    .map(|(how, text)| (how.to_owned(), text))
    .collect::<Vec<_>>();
    for before in ["", "x", "xy"] {
        let long = "0123456789".repeat(7);
        let text = format!("{before}{long}01{secret}{long}");
        let (standard, url) = (BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text));
        all.push((format!("base64 behind {before}"), standard.clone()));
        all.push((format!("base64url behind {before}"), url));
        for (name, end) in [("\\n", "\n"), ("\\r\\n", "\r\n"), ("\\n in JSON", "\\n"), ("%0A", "%0A")] {
            all.push((format!("base64 by 76 with {name} behind {before}"), wrapped(&standard, 76, end)));
        }
        all.push((format!("base64 by 64 behind {before}"), wrapped(&standard, 64, "\n ")));
    }
    all
}

/// The part of a spelling that must not be shown: of base64, of which a secret is only a part, none of its middle.
fn middle(how: &str, text: &str) -> String {
    let margin = if how.starts_with("base64") { text.len() / 2 - 5 } else { 3 };
    let (from, to) = (text.floor_char_boundary(margin), text.ceil_char_boundary(text.len() - margin));
    text[from..to].to_owned()
}

/// I15, PO-7: every usual spelling of every secret is found, whatever surrounds it.
#[test]
fn secrets_are_found_in_every_usual_spelling() {
    let mut tried = 0;
    let mut leaks = Vec::new();
    for secret in SECRETS {
        let redactor = Redactor::new().with_secret(secret).unwrap();
        for (how, spelled) in spellings(secret) {
            for (before, after) in [
                ("", ""),
                ("it is \"", "\", so"),
                ("100%", "%41"),
                ("C:\\", "\\n"),
                ("x=1&", "&y;"),
                ("%4", ""),
            ] {
                tried += 1;
                let shown = redactor.text(&format!("{before}{spelled}{after}")).into_owned();
                if !shown.contains("[redacted]") || shown.contains(&middle(&how, &spelled)) {
                    leaks.push(format!("{how}: {before:?} {spelled:?}: {shown:?}"));
                }
                assert_eq!(redactor.text(&shown), shown, "redacted twice: {how}");
            }
        }
    }
    assert!(tried >= 128 && leaks.is_empty(), "{} of {tried}:\n{}", leaks.len(), leaks.join("\n"));
}

/// I15: so are they if they arrive in pieces, cut anywhere.
#[test]
fn secrets_in_pieces_are_found_in_every_usual_spelling() {
    let pieces_of = |redactor: &Redactor, pieces: &[&str]| {
        let mut stream = Stream::default();
        let mut shown: String = pieces.iter().filter_map(|piece| stream.push(redactor, piece)).collect();
        shown.extend(stream.finish(redactor));
        shown
    };
    for secret in SECRETS {
        let redactor = Redactor::new().with_secret(secret).unwrap();
        for (how, spelled) in spellings(secret) {
            let hidden = middle(&how, &spelled);
            let places =
                spelled.char_indices().map(|(at, _)| at).step_by(if spelled.len() > 100 { 7 } else { 1 });
            for at in places {
                let shown = pieces_of(&redactor, &[&spelled[..at], &spelled[at..]]);
                assert!(
                    shown.contains("[redacted]") && !shown.contains(&hidden),
                    "{how} at {at}: {spelled:?}: {shown:?}"
                );
            }
            if how.starts_with("base64") {
                continue;
            }
            let each: Vec<&str> = spelled.split_inclusive(|_| true).collect();
            let shown = pieces_of(&redactor, &each);
            assert!(!shown.contains(&hidden), "{how}, letter by letter: {spelled:?}: {shown:?}");
        }
    }
}

/// V5: text that is not a secret stays as it is, escapes and all.
#[test]
fn other_escapes_stay() {
    let redactor = Redactor::new().with_secrets(["hunter2x/y", "a \"b\" c d"]).unwrap();
    for text in [
        r#"{"path":"C:\\hunter\\2x","n":"\u00e9\n"}"#,
        "100% of a+b&amp;c %zz %4",
        "aHVudGVy\n",
        "hunter2x\\y",
        "\\\\\\\\\\\\",
    ] {
        assert_eq!(redactor.text(text), text);
    }
    assert_eq!(redactor.text(r#"{"a":"hunter2x\/y"}"#), r#"{"a":"[redacted]"}"#);
    assert_eq!(redactor.text(r#"{"a":"C:\\hunter2x\/y\n"}"#), r#"{"a":"C:\\[redacted]\n"}"#);
    assert_eq!(redactor.text("q=a+%22b%22+c+d&n=1"), "q=[redacted]&n=1");
}

/// V5: the steps of a search grow with the text, not with the secrets, whatever they consist of.
#[test]
fn a_search_is_linear_in_the_text() {
    let hostile = [
        "ab%ab%ab%ab%ab%ab%ab%ab%ab%ab".repeat(40),
        "n\\n\\n\\n\\n\\n\\n\\n\\n".repeat(50),
        "u0041\\u0041\\u0041\\u0041".repeat(40),
        "amp;&amp;&amp;&amp;&amp;".repeat(40),
        "a".repeat(5000),
        "\\\\\\\\\\\\\\\\a".repeat(100),
    ];
    let secrets: BTreeSet<_> = hostile.iter().map(|secret| secret.as_str().into()).collect();
    let secrets = Secrets::of(secrets).unwrap().unwrap();
    let parts = ["%ab", "\\n", "\\u0041", "&amp;", "a", "\\", "%25", "%5C", "%", "&#x", "\\ud83d"];
    for part in parts.iter().copied().chain(hostile.iter().map(String::as_str)) {
        for bytes in [1_000, 10_000, 100_000] {
            let text = part.repeat(bytes / part.len());
            let steps = secrets.find_spelled(&text, &mut |_| {});
            assert!(steps <= 24 * text.len(), "{part:.20}: {steps} steps for {} bytes", text.len());
        }
    }
}
