//! Reading `[server]`.

use super::{errors, read};

/// HT-5: what is missing or wrong of whom is told, and what must not be in the file, is reported.
#[test]
fn who_is_told_of_questions_is_read() {
    let found = |keys: &str| -> Vec<String> {
        errors(&format!("[server.notify]\n{keys}")).into_iter().map(|(_, what)| what).collect()
    };
    assert!(read("[server]").unwrap().server.notify.is_none());
    assert_eq!(found(""), ["[server] notify url is missing", "[server] notify secret is missing"]);
    let written =
        found("url = \"http://hooks.example/\"\nsecret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"");
    assert!(written[0].contains("secret must not be written here") && !written[0].contains("MfKQ"));
    let unset = found("url = \"http://hooks.example/\"\nsecret = \"$NO_SUCH_VARIABLE\"");
    assert_eq!(unset, ["[server] notify secret: the environment variable NO_SUCH_VARIABLE is not set"]);
    let short = found("url = \"http://hooks.example/\"\nsecret = \"$PATH\"");
    assert!(short.len() == 1 && short[0].contains("24 to 64 random bytes"), "{short:?}");
    let mistyped = found("ulr = \"http://hooks.example/\"\nsecret = \"$NO_SUCH_VARIABLE\"");
    assert!(mistyped.len() == 2 && mistyped[0].contains("did you mean 'url'?"), "{mistyped:?}");
}
