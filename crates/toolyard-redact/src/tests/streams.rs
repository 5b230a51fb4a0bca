//! Texts that arrive in pieces.

use crate::{Redactor, Stream};
use proptest::prelude::*;

/// What is shown of these pieces, one by one, and at the end.
fn shown(redactor: &Redactor, pieces: &[&str]) -> Vec<String> {
    let mut stream = Stream::default();
    let mut shown: Vec<String> =
        pieces.iter().map(|piece| stream.push(redactor, piece).unwrap_or_default()).collect();
    shown.push(stream.finish(redactor).unwrap_or_default());
    shown
}

/// Cuts the text at these places.
fn cut<'a>(text: &'a str, places: &[usize]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        places.iter().map(|at| text.floor_char_boundary(at % (text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|two| &text[two[0]..two[1]]).collect()
}

/// I15: only a possible start of a secret is held back, and only until it turns out to be none.
#[test]
fn only_a_begin_is_held_back() {
    let redactor = Redactor::new().with_secret("swordfish").unwrap();
    assert_eq!(shown(&redactor, &["a sword", "s are b", "right"]), ["a ", "swords are b", "right", ""]);
    assert_eq!(shown(&redactor, &["swor", "dfi", "sh!"]), ["", "", "[redacted]!", ""]);
    assert_eq!(shown(&redactor, &["x sw"]), ["x ", "sw"]);
}

/// I15: with patterns, a word is shown once it is complete; text shown earlier gives a value its context.
#[test]
fn tokens_in_pieces_are_found() {
    let redactor = Redactor::standard();
    let pieces = ["use ghp_aB3aB3aB3aB3aB3a", "B3aB3aB3aB3aB3aB3aB3 now"];
    assert_eq!(shown(&redactor, &pieces), ["use ", "[redacted: github token] ", "now"]);
    let pieces = ["Authorization: ", "Basic ", "dXNlcjpwYX", "Nz\nnext "];
    assert_eq!(
        shown(&redactor, &pieces),
        ["Authorization: ", "Basic ", "", "[redacted: authorization]\nnext ", ""]
    );
    let key =
        ["-----BEGIN ", "PRIVATE KEY-----\n", "MIIE", "vQ\nAB", "CD\n-----END PRIV", "ATE KEY-----\nafter "];
    let all = shown(&redactor, &key).concat();
    assert_eq!(all, "-----BEGIN [redacted: private key]\nafter ");
}

/// I15: an endless word is not held back for ever, and its rest is not shown if its start was a secret.
#[test]
fn a_word_without_end_is_not_held_for_ever() {
    let redactor = Redactor::standard();
    let long = "x".repeat(9000);
    assert_eq!(shown(&redactor, &[&long, "y z"]).concat(), format!("{long}y z"));
    let token = format!("ghp_{}", "aB3".repeat(3000));
    assert_eq!(shown(&redactor, &[&token, "4c5D", "6e end"]).concat(), "[redacted: github token] end");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// I15: a planted secret never survives, however its text is cut; other text is shown whole.
    #[test]
    fn a_secret_in_pieces_never_survives(
        secret in "[a-c]{6,9}", around in prop::collection::vec("[a-c \n]{0,9}", 1..4),
        places in prop::collection::vec(any::<usize>(), 0..12), patterns in any::<bool>(),
    ) {
        let redactor = if patterns { Redactor::standard() } else { Redactor::new() };
        let redactor = redactor.with_secret(&secret).unwrap();
        let text = around.join(&secret);
        let shown = shown(&redactor, &cut(&text, &places)).concat();
        prop_assert!(!shown.contains(&secret), "{shown}");
        let plain = |text: &str| text.replace("[redacted]", "");
        prop_assert_eq!(plain(&shown), plain(&redactor.text(&text)));
    }

    /// I15: a text without secrets comes out unchanged.
    #[test]
    fn what_is_none_is_shown_whole(text in "[a-z .,\n\u{e4}-\u{ef}]{0,80}", places in prop::collection::vec(any::<usize>(), 0..9)) {
        let redactor = Redactor::standard().with_secret("swordfish").unwrap();
        prop_assume!(!text.contains("swordfish"));
        prop_assert_eq!(shown(&redactor, &cut(&text, &places)).concat(), text);
    }
}
