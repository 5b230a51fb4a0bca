//! The expectations in `docs/mcp-conformance.md`.

use std::{collections::BTreeMap, fs, path::Path};

/// Whether each scenario passes.
pub(crate) type Results = BTreeMap<String, bool>;

/// The expected results, by the heading above a table and the column in it. `passes` means that the scenario passes, a
/// dash that it does not exist, and anything else that it fails.
pub(crate) fn expected(heading: &str, column: &str) -> Results {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp-conformance.md");
    let text = fs::read_to_string(path).unwrap();
    let mut rows = text.lines().skip_while(|line| *line != format!("## {heading}"));
    let mut rows =
        rows.by_ref().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let column = cells(rows.next().unwrap()).iter().position(|cell| *cell == column).unwrap();
    let results: Results = rows
        .skip(1)
        .map(|row| cells(row))
        .filter(|cells| cells[column] != "–")
        .map(|cells| (cells[0].trim_matches('`').to_owned(), cells[column] == "passes"))
        .collect();
    assert!(!results.is_empty(), "there is nothing in {heading}");
    results
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Fails if any result differs from its expectation.
pub(crate) fn compare(expected: &Results, found: &Results, output: &str) {
    let scenarios = expected.keys().chain(found.keys());
    let other: Vec<_> = scenarios.filter(|name| expected.get(*name) != found.get(*name)).collect();
    assert!(other.is_empty(), "otherwise than docs/mcp-conformance.md says: {other:?}\n{output}");
}
