//! Registered secrets, in all their forms.

use crate::{Redactor, secrets::SecretError};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, Engine as _};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{borrow::Cow, error::Error, fmt, iter};

fn with(secret: &str) -> Redactor {
    Redactor::standard().with_secret(secret).unwrap()
}

/// I15: a secret that cannot be told from other text is refused, and the refusal says why without the secret.
#[test]
fn what_is_no_secret_is_refused() {
    let refused = |secret: &str| Redactor::new().with_secret(secret).unwrap_err();
    assert_eq!(refused("12345"), SecretError::TooShort { bytes: 5 });
    assert_eq!(refused("redacted"), SecretError::Mark);
    assert_eq!(refused(&"x".repeat(20_000)), SecretError::TooLong { bytes: 20_000 });
    let said = refused("abcde").to_string();
    assert!(said.contains("at least 6") && !said.contains("abcde"), "{said}");
    assert!(Redactor::new().with_secrets(Vec::<String>::new()).unwrap().text("x") == "x");
    let shown = format!("{:?}", with("sword fish"));
    assert!(!shown.contains("sword"), "{shown}");
}

/// I15: secrets that overlap are taken out together.
#[test]
fn overlapping_secrets_leave_nothing() {
    let redactor = Redactor::new().with_secrets(["abcdef", "defghi", "cdefgh"]).unwrap();
    assert_eq!(redactor.text("<abcdefghi>"), "<[redacted]>");
    assert_eq!(redactor.text("abcdefabcdef"), "[redacted][redacted]");
}

/// I15: a numeric secret is also found as a number in data.
#[test]
fn a_number_may_be_a_secret() {
    let seen = json!({"pin": 84_710_293, "x": [-84_710_293.5], "n": 8_471_029});
    let shown = with("84710293").value(&seen).into_owned();
    assert_eq!(shown, json!({"pin": "[redacted]", "x": ["-[redacted].5"], "n": 8_471_029}));
    assert!(matches!(Redactor::standard().value(&seen), Cow::Borrowed(_)));
}

/// I15: a token right behind a secret is found too, and marks stay as they are.
#[test]
fn what_a_secret_hides_is_found() {
    let redactor = with("hunter2x");
    let text = "hunter2xsk-a1B2c3D4e5F6g7H8i9J0k1";
    assert_eq!(redactor.text(text), "[redacted][redacted: api key]");
    assert_eq!(with("x[reda").text("x[redacted]"), "[redacted][redacted]");
}

/// I15: in JSON, JSON in JSON, URLs and base64, a secret is found whatever surrounds it.
#[test]
fn every_form_is_found() {
    let secret = "p\"w/ö <&> 7\\\n!";
    let redactor = Redactor::new().with_secret(secret).unwrap();
    let json = json!(secret).to_string();
    let twice = json!(json).to_string();
    let ascii = r#"p\"w/\u00f6 <&> 7\\\n!"#;
    let html = r#"p\"w/\u00f6 \u003c\u0026\u003e 7\\\n!"#;
    let url = "p%22w%2F%C3%B6%20%3C%26%3E%207%5C%0A%21";
    let forms = [secret, &json, &twice, ascii, html, url, &url.replace("%20", "+")];
    for form in forms {
        let shown = redactor.text(form).into_owned();
        assert!(shown.contains("[redacted]") && !shown.contains("7"), "{form} {shown}");
    }
    let lower = "p%22w%2f%c3%b6%20%3c%26%3e%207%5c%0a%21";
    assert_eq!(redactor.text(lower), "[redacted]");
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "z", "zz", "zzz"] {
            let bytes = format!("{before}{secret}{after}");
            for encoded in [BASE64_STANDARD.encode(&bytes), BASE64_URL_SAFE.encode(&bytes)] {
                assert!(redactor.text(&encoded).contains("[redacted]"), "{before} {after}");
            }
        }
    }
}

prop_compose! {
    /// Texts in which secrets, marks and patterns overlap.
    fn tangled()(parts in prop::collection::vec(
        prop_oneof![
            Just("hunter2x".to_owned()), Just("[redacted]".to_owned()), Just("[redac".to_owned()),
            Just("password=".to_owned()), Just("sk-a1B2c3D4e5F6g7H8i9J0k1".to_owned()),
            Just("Authorization: Bearer ".to_owned()), Just("://a:".to_owned()), Just("@".to_owned()),
            Just("-----BEGIN PRIVATE KEY-----".to_owned()), Just("\"".to_owned()), Just(" ".to_owned()),
            "[a-z0-9=:. \\[\\]-]{0,6}",
        ], 0..12)) -> String { parts.concat() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// I15: a planted secret never survives in a text, and redacting twice is redacting once.
    #[test]
    fn a_planted_secret_never_survives(
        secret in "\\PC{6,24}", before in "\\PC{0,30}", after in "\\PC{0,30}",
    ) {
        prop_assume!(!"[redacted]".contains(&secret));
        let redactor = with(&secret);
        let once = redactor.text(&format!("{before}{secret}{after}{secret}")).into_owned();
        prop_assert!(!once.contains(&secret), "{once}");
        prop_assert_eq!(redactor.text(&once), once.as_str());
    }

    /// I15: a planted secret survives neither in nested data, nor in the JSON text of it.
    #[test]
    fn nor_in_nested_data(secret in "\\PC{6,24}", path in prop::collection::vec(any::<bool>(), 0..6)) {
        prop_assume!(!"[redacted]".contains(&secret));
        let redactor = with(&secret);
        let leaf = json!({secret.clone(): format!("a {secret}")});
        let seen = path.iter().fold(leaf, |inner, is_list| match is_list {
            true => json!([1, inner]),
            false => json!({"x": inner, "y": null}),
        });
        let shown = redactor.value(&seen).into_owned();
        prop_assert!(!holds(&shown, &secret), "{shown}");
        prop_assert!(matches!(redactor.value(&shown), Cow::Borrowed(_)));
        let text = redactor.text(&seen.to_string()).into_owned();
        let escaped = json!(secret).to_string();
        prop_assert!(!text.contains(&escaped[1..escaped.len() - 1]), "{text}");
    }

    /// I15: whatever overlaps, redacting twice is redacting once.
    #[test]
    fn redacting_twice_is_redacting_once(text in tangled()) {
        let redactor = with("hunter2x");
        let once = redactor.text(&text).into_owned();
        prop_assert!(!once.contains("hunter2x"));
        prop_assert_eq!(redactor.text(&once), once.as_str());
    }
}

fn holds(value: &Value, secret: &str) -> bool {
    match value {
        Value::String(text) => text.contains(secret),
        Value::Array(items) => items.iter().any(|item| holds(item, secret)),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains(secret) || holds(value, secret))
        }
        _ => false,
    }
}

/// An error so many links above the one that has a secret in it, which no link's `Debug` shows.
struct Deep(Box<str>, Option<Box<Deep>>);

impl fmt::Display for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deep")
    }
}

impl Error for Deep {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|below| below as _)
    }
}

/// I15: a cause is redacted however many errors it has below it; of a longer chain than is checked nothing is kept that
/// was not.
#[test]
fn a_secret_deep_in_a_chain_of_causes_is_not_kept() {
    let secret = with("hunter2x");
    for depth in [0, 1, 63, 64, 65, 200] {
        let last = Deep("the password is hunter2x".into(), None);
        let deep = (0..depth).fold(last, |below, _| Deep("it failed".into(), Some(Box::new(below))));
        let shown = secret.cause(&deep).expect("it has a secret in it");
        let links = iter::successors(Some(&*shown as &(dyn Error + 'static)), |link| (*link).source());
        let texts: Vec<String> = links.map(ToString::to_string).collect();
        assert!(!texts.concat().contains("hunter2x"), "at a depth of {depth}");
        assert_eq!(texts.len(), 64.min(depth + 1));
    }
    let (short, long) = (64, 65);
    let harmless =
        |links| (1..links).fold(Deep("x".into(), None), |below, _| Deep("x".into(), Some(below.into())));
    assert!(secret.cause(&harmless(short)).is_none(), "kept as it is");
    assert!(secret.cause(&harmless(long)).is_some(), "cut off");
}
