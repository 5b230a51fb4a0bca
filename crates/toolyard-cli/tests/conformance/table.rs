//! What `docs/mcp-conformance.md` says of each scenario.

use std::{collections::BTreeMap, fs, path::Path};

/// Whether each scenario passes.
pub(crate) type Results = BTreeMap<String, bool>;

/// What is expected, by the heading above a table and the column in it. `passes` is what it says, a dash stands for a
/// scenario that is not there, and whatever else stands there does not pass.
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

/// Fails where something passes that is not expected to, or the other way round.
pub(crate) fn compare(expected: &Results, found: &Results, said: &str) {
    let scenarios = expected.keys().chain(found.keys());
    let other: Vec<_> = scenarios.filter(|name| expected.get(*name) != found.get(*name)).collect();
    assert!(other.is_empty(), "otherwise than docs/mcp-conformance.md says: {other:?}\n{said}");
}
