//! Links between the texts.

use crate::{
    child::root,
    page::{Page, files},
};
use std::{collections::BTreeSet, path::Path};

/// The targets of the links of a page, without those that are written as code.
fn targets(page: &Page) -> Vec<String> {
    let prose = page.prose();
    let outside_code: String = prose.split('`').step_by(2).collect();
    outside_code.split("](").skip(1).map(|after| after.split(')').next().unwrap().to_owned()).collect()
}

/// The places of a page that a link can name: its headings, and what has an id.
fn anchors(page: &Page) -> BTreeSet<String> {
    let prose = page.prose();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let named = prose.split("<a id=\"").skip(1).map(|after| after.split('"').next().unwrap().to_owned());
    headings.map(|line| slug(line.trim_start_matches('#').trim())).chain(named).collect()
}

/// The name that GitHub gives to a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Whether a link of a page leads to a file of the repository, and to a heading if it names one.
fn leads(page: &Page, target: &str) -> bool {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = match file {
        "" => page.path.clone(),
        file => Path::new(&page.path).parent().unwrap().join(file).to_str().unwrap().to_owned(),
    };
    let exists = root().join(&path).exists();
    exists && anchor.is_none_or(|anchor| anchors(&Page::open(&path)).contains(anchor))
}

#[test]
fn links_lead_to_files_and_headings() {
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut paths = files("docs", &["md"]);
    paths.extend(top.map(str::to_owned));
    paths.push("crates/toolyard/README.md".to_owned());
    let (mut checked, mut broken) = (0, Vec::new());
    for page in paths.iter().map(|path| Page::open(path)) {
        for target in targets(&page).into_iter().filter(|target| !target.starts_with("https://")) {
            checked += 1;
            if !leads(&page, &target) {
                broken.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(checked > 40, "only {checked} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = Page::open("README.md");
    assert!(leads(&page, "docs/rules.md#cc-6") && leads(&page, "#status"));
    for target in ["docs/no-such-page.md", "docs/rules.md#cc-999", "#no-such-heading"] {
        assert!(!leads(&page, target), "{target}");
    }
    assert_eq!(slug("What happened? (`toolyard audit`)"), "what-happened-toolyard-audit");
}
