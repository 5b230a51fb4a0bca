//! The ids of rules: those that the sources name are those that docs/rules.md explains.

use crate::{
    child::root,
    page::{Page, files},
};
use std::{collections::BTreeSet, fs};

/// Whether a word is the id of a rule: `CC-6`, `CC-6b`, or `V1`, `I15`, `T19`.
fn is_id(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('-') {
        Some((area, rest)) => {
            area.len() == 2
                && area.bytes().all(|byte| byte.is_ascii_uppercase())
                && number(rest.strip_suffix(|letter: char| letter.is_ascii_lowercase()).unwrap_or(rest))
        }
        None => word.strip_prefix(['V', 'I', 'T']).is_some_and(number),
    }
}

/// The ids that a text names. A variant such as `ABI::V8` is none.
fn named(text: &str) -> BTreeSet<&str> {
    let in_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ':');
    let words = text.split(|letter| !in_word(letter)).map(|word| word.trim_matches(':'));
    words.filter(|word| is_id(word)).collect()
}

/// The ids that docs/rules.md explains: each begins its rule, and can be linked to.
fn explained(text: &str) -> BTreeSet<&str> {
    let rules =
        text.lines().filter_map(|line| line.strip_prefix("- ").unwrap_or(line).strip_prefix("<a id=\""));
    let rules = rules.map(|rule| {
        let (anchor, rule) = rule.split_once("\"></a>**").unwrap();
        let id = rule.split([' ', '*']).next().unwrap();
        assert_eq!(anchor, id.to_lowercase());
        id
    });
    let (mut ids, mut twice) = (BTreeSet::new(), Vec::new());
    twice.extend(rules.filter(|id| !ids.insert(*id)));
    assert!(twice.is_empty(), "explained twice: {twice:?}");
    ids
}

#[test]
fn every_rule_that_is_named_exists() {
    let rules = Page::open("docs/rules.md");
    let explained = explained(&rules.text);
    let mut paths =
        vec!["ARCHITECTURE.md".to_owned(), "CONTRIBUTING.md".to_owned(), "SECURITY.md".to_owned()];
    paths.extend(files("docs", &["md"]));
    for folder in ["crates", "tests", "examples", "benches"] {
        paths.extend(files(folder, &["rs", "toml", "txt"]));
    }
    paths.retain(|path| !path.ends_with("tests/texts/rules.rs"));
    let (mut used, mut unknown) = (BTreeSet::new(), Vec::new());
    for path in &paths {
        let text = fs::read_to_string(root().join(path)).unwrap();
        for id in named(&text) {
            if explained.contains(id) {
                used.insert(id.to_owned());
            } else if !path.ends_with("tests/texts/links.rs") {
                unknown.push(format!("{path}: {id}"));
            }
        }
    }
    assert!(unknown.is_empty(), "docs/rules.md does not explain {unknown:#?}");
    assert!(used.len() > 100, "only {} rules are named", used.len());
}

#[test]
fn ids_of_rules_are_told_from_other_words() {
    let text = "V1, PO-1b; T1–T3 (CC-6). Not UTF-8, SHA-256, V1beta, I, CC-, cc-6, X_T2 or CC-6B";
    assert_eq!(named(text).into_iter().collect::<Vec<_>>(), ["CC-6", "PO-1b", "T1", "T3", "V1"]);
}
