//! The rooms of this crate point one way: what ARCHITECTURE.md draws, checked against the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The top-level modules that each of them names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Files under a folder, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if matches!(name, "tests" | "tests.rs" | "rooms.rs" | "lib.rs") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// The code of a file, without comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The modules that a text names after `crate::`, alone or in braces.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            names.insert(word(after));
            continue;
        };
        let (mut depth, mut at_start) = (0, true);
        for (place, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => at_start = true,
                _ if at_start && letter.is_alphabetic() => {
                    names.insert(word(&group[place..]));
                    at_start = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn arrows(src: &Path) -> Arrows {
    let mut files = Vec::new();
    sources(src, &mut files);
    let room = |path: &Path| {
        let first = path.strip_prefix(src).unwrap().iter().next().unwrap().to_str().unwrap();
        first.strip_suffix(".rs").unwrap_or(first).to_owned()
    };
    let mut arrows = Arrows::new();
    for file in &files {
        arrows.entry(room(file)).or_default().extend(named(&code(file)));
    }
    let rooms: BTreeSet<_> = arrows.keys().cloned().collect();
    for (from, to) in &mut arrows {
        to.retain(|name| name != from && rooms.contains(name));
    }
    arrows
}

/// Takes away the rooms that use none of those left, floor by floor; what is left in the end is in a circle, or above
/// one.
fn circle(mut arrows: Arrows) -> Arrows {
    loop {
        let ground: Vec<_> =
            arrows.iter().filter(|(_, to)| to.is_empty()).map(|(room, _)| room.clone()).collect();
        if ground.is_empty() {
            return arrows;
        }
        arrows.retain(|room, _| !ground.contains(room));
        arrows.values_mut().for_each(|to| ground.iter().for_each(|room| _ = to.remove(room)));
    }
}

#[test]
fn no_room_uses_one_above_it() {
    let arrows = arrows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(arrows["call"].contains("gate") && arrows["gate"].contains("agent"), "{arrows:?}");
    let circle = circle(arrows);
    assert!(circle.is_empty(), "these rooms use each other: {circle:#?}");
}

#[test]
fn a_circle_is_seen() {
    let text = "use crate::{b::{C, D}, e};\nlet x = crate::f::g();";
    assert_eq!(named(text), BTreeSet::from(["b", "e", "f"].map(str::to_owned)));
    let arrow = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|&to| to.to_owned()).collect());
    let arrows =
        Arrows::from([arrow("a", &["b"]), arrow("b", &["c", "d"]), arrow("c", &["b"]), arrow("d", &[])]);
    assert_eq!(circle(arrows).into_keys().collect::<Vec<_>>(), ["a", "b", "c"]);
}
