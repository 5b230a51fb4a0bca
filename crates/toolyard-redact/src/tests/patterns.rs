//! Patterns: what they find, and near misses.

use crate::{Redactor, patterns};
use serde_json::json;
use std::{borrow::Cow, collections::BTreeSet};

fn shown(text: &str) -> String {
    let redactor = Redactor::standard();
    let once = redactor.text(text).into_owned();
    assert_eq!(redactor.text(&once), once, "redacted twice");
    once
}

/// I15, V5: each pattern finds its token and names its kind, and leaves the text around it.
#[test]
fn tokens_are_found_and_named() {
    let a36 = "aB3".repeat(12);
    let tokens = [
        ("aws key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
        ("github token", format!("ghp_{a36}")),
        ("github token", format!("gho_{a36}")),
        ("github token", format!("github_pat_{a36}_{a36}")),
        ("gitlab token", "glpat-x1Y2z3A4b5C6d7E8f9G0".to_owned()),
        ("slack token", "xoxb-123456789012-abcDEF123".to_owned()),
        ("stripe key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc".to_owned()),
        ("api key", format!("sk-proj-{a36}")),
        ("api key", format!("sk-ant-api03-{a36}-AA")),
        ("google key", format!("AIza{}", &a36[..35])),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N".to_owned()),
    ];
    for (kind, token) in tokens {
        let text = format!("it says '{token}', twice: {token} .");
        let mark = format!("[redacted: {kind}]");
        assert_eq!(shown(&text), format!("it says '{mark}', twice: {mark} ."), "{token}");
    }
}

/// I15: values are found by their names.
#[test]
fn values_are_found_by_their_names() {
    let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let cases = [
        (format!("aws_secret_access_key = {aws}"), "aws_secret_access_key = [redacted: aws secret]"),
        (format!(r#"{{"SecretAccessKey": "{aws}"}}"#), r#"{"SecretAccessKey": "[redacted: aws secret]"}"#),
        ("Authorization: Basic YWRhOnB3".into(), "Authorization: Basic [redacted: authorization]"),
        ("authorization: Bearer abc".into(), "authorization: Bearer abc"),
        ("curl -H 'Bearer 0a1b2c3d4e5f'".into(), "curl -H 'Bearer [redacted: authorization]'"),
        ("postgres://ada:pw@db:5432/x".into(), "postgres://ada:[redacted: url password]@db:5432/x"),
        ("https://:tok@host/".into(), "https://:[redacted: url password]@host/"),
        ("DB_PASSWORD=swordfish next".into(), "DB_PASSWORD=[redacted: password] next"),
        ("?api_key=abc&page=2".into(), "?api_key=[redacted: password]&page=2"),
        (r#"{"password":"sword fish","n":1}"#.into(), r#"{"password":"[redacted: password]","n":1}"#),
        (r#"{\"client_secret\":\"swordfish\"}"#.into(), r#"{\"client_secret\":\"[redacted: password]\"}"#),
        ("password: hunter2".into(), "password: [redacted: password]"),
        ("Server=db;Pwd=swordfish;".into(), "Server=db;Pwd=[redacted: password];"),
        ("DB_PWD=swordfish".into(), "DB_PWD=[redacted: password]"),
        (r#"{"SA_PWD":"swordfish"}"#.into(), r#"{"SA_PWD":"[redacted: password]"}"#),
    ];
    for (text, wanted) in cases {
        assert_eq!(shown(&text), wanted, "{text}");
    }
}

/// I15: a private key is taken out whole, up to the end of the text if its own end is missing.
#[test]
fn private_keys_are_taken_out_whole() {
    let body = "MIIEvQIBADANBg\nkqhkiG9w0BAQ\n";
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----");
    assert_eq!(shown(&format!("a\n{key}\nb")), "a\n[redacted: private key]\nb");
    assert_eq!(shown(&format!("a\n{}", &key[..50])), "a\n[redacted: private key]");
    let public = format!("-----BEGIN PUBLIC KEY-----\n{body}-----END PUBLIC KEY-----");
    assert_eq!(shown(&public), public);
}

/// V5: prose, code and paths are not secrets.
#[test]
fn near_misses_stay() {
    let texts = [
        "task-management-and-scheduling is a risk-averse-undertaking",
        "import sk-learn-pipelines-and-transformers",
        "AKIA and ASIA; AKIAIOSFODNN7EXAMPL; XAKIAIOSFODNN7EXAMPLE",
        "ghp_short, glpat-short, xoxb-, AIzaShort, eyJ.eyJ.x",
        "let password: String = read_password()?;",
        "password = input(\"password: \")",
        "password = os.environ[\"X\"]",
        "def login(user, password=None, token=True):",
        "password: required",
        "the password is asked for; secrets of the trade: patience",
        "PASSWORD_FILE=/run/secrets/db",
        "the bearer of this letter, Bearer authentication",
        "http://host:8080/a@b and mailto:ada@example.org",
        "Authorization: required",
        "secretary=ada",
        "PWD=/srv/site OLDPWD=/ pwd=/tmp/a1 PWD=C:\\Users\\ada7",
        "PWD: src2/lib9, 'PWD': 'project7', \"OLDPWD\": \"a1\"",
        "password: https://example.org/reset1?for=ada2",
        "\"password\": \"https://example.org/reset1\"",
        "fetch(url, {credentials: \"include\"}), credentials = 'same-origin'",
        "password: \"********\", secret = 'xxxxxxxx', api_key=\"${API_KEY1}\", passwd=\"<your password>\"",
        "password=\"{{ vault.db1 }}\" password='%(db)s'",
        "ssl_private_key: /etc/ssl/key1.pem, secret=./run/x1, credentials=~/.aws/c1",
        "1.23e4 a=b c:d \"e\": \"f\"",
        "[redacted] password=[redacted: password] api_key=\"[redacted]\"",
    ];
    for text in texts {
        assert!(matches!(Redactor::standard().text(text), Cow::Borrowed(_)), "{}", shown(text));
    }
}

/// PO-7: every pattern's kind has a mark of its own, which a session can be given.
#[test]
fn every_kind_has_a_mark() {
    let kinds: BTreeSet<_> = patterns::kinds().collect();
    assert_eq!(kinds, patterns::KINDS.into_iter().collect());
}

/// PO-7: `PWD` names a directory, not a password, in data too.
#[test]
fn a_working_directory_is_no_password() {
    let seen = json!({"PWD": "site7", "OLDPWD": "/", "env": {"PWD": "C:\\work1"}});
    assert!(matches!(Redactor::standard().value(&seen), Cow::Borrowed(_)));
}

/// I15: nested data is redacted, values under telling names, and field names; no field is lost.
#[test]
fn data_is_redacted_inside() {
    let token = format!("ghp_{}", "aB3".repeat(12));
    let other = format!("ghp_{}", "Zz9".repeat(12));
    let seen = json!({
        "list": [1, token, {"deep": format!("x {token}")}],
        "password": "swordfish",
        "user.api_key": "k",
        "password_hint": "a fish",
        token.clone(): 1,
        other: 2,
    });
    let redactor = Redactor::standard();
    let shown = redactor.value(&seen).into_owned();
    let wanted = json!({
        "list": [1, "[redacted: github token]", {"deep": "x [redacted: github token]"}],
        "password": "[redacted: password]",
        "user.api_key": "[redacted: password]",
        "password_hint": "a fish",
        "[redacted: github token]": 1,
        "[redacted: github token] (5)": 2,
    });
    assert_eq!(shown, wanted);
    assert!(matches!(redactor.value(&shown), Cow::Borrowed(_)));
}
