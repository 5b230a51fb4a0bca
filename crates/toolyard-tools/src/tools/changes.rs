//! Renders how a file would change, for the approver. Nothing is cut here: whoever shows it knows what fits.

use similar::{ChangeTag, DiffOp, TextDiff, udiff::UnifiedHunkHeader};
use std::time::Duration;

/// Texts longer than this are not compared.
const COMPARED_BYTES_MAX: usize = 1 << 20;

/// The number of equal lines that are shown around a change.
const CONTEXT_LINES: usize = 3;

/// How long to search for a short diff; after that a longer one is accepted.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// The changes from one text to another as a unified diff.
pub(super) fn between(before: &str, after: &str) -> String {
    if before == after {
        return "no change".to_owned();
    }
    if before.len().max(after.len()) > COMPARED_BYTES_MAX {
        return format!("{} bytes replace {}, too large to compare", after.len(), before.len());
    }
    let (before, after) = (lines(before), lines(after));
    let diff = TextDiff::configure().timeout(SEARCH_TIMEOUT).diff_slices(&before, &after);
    let mut shown = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        shown.push(UnifiedHunkHeader::new(&group).to_string());
        group.iter().for_each(|op| render(&diff, op, &mut shown));
    }
    shown.join("\n")
}

/// The text of a file that does not exist yet.
pub(super) fn new_file(text: &str) -> String {
    if text.is_empty() {
        return "new file, empty".to_owned();
    }
    let mut shown = vec!["new file".to_owned()];
    shown.extend(lines(text).into_iter().map(|line| diff_line('+', line)));
    shown.join("\n")
}

/// Splits at line feeds only: any other character that moves a cursor is part of its line.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn render(diff: &TextDiff<'_, '_, str>, op: &DiffOp, shown: &mut Vec<String>) {
    for change in diff.iter_changes(op) {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        shown.push(diff_line(sign, change.value()));
    }
}

fn diff_line(sign: char, line: &str) -> String {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, ""),
        None => (line, " [no newline at end of file]"),
    };
    format!("{sign}{text}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_what_is_around_it() {
        let (before, after) = ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        assert_eq!(between(before, after), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8");
        assert_eq!(between(before, before), "no change");
    }

    #[test]
    fn a_line_without_an_end_says_so() {
        assert_eq!(between("a\n", "a"), "@@ -1 +1 @@\n-a\n+a [no newline at end of file]");
        assert_eq!(new_file("a\nb"), "new file\n+a\n+b [no newline at end of file]");
        assert_eq!(new_file(""), "new file, empty");
    }

    /// A carriage return does not end a line: text after it stays on the line that it would overwrite.
    #[test]
    fn a_carriage_return_is_a_character_of_its_line() {
        assert_eq!(new_file("rm -rf /\rls\n"), "new file\n+rm -rf /\rls");
    }

    /// PO-4: whoever shows the changes decides what is cut, and can show it on request.
    #[test]
    fn long_texts_and_lines_are_whole() {
        assert_eq!(new_file(&"x\n".repeat(100)).lines().count(), 101);
        let long = "ü".repeat(5000);
        assert_eq!(new_file(&format!("{long}\n")), format!("new file\n+{long}"));
        let large = "x\n".repeat(COMPARED_BYTES_MAX);
        assert_eq!(between("", &large), "2097152 bytes replace 0, too large to compare");
    }
}
