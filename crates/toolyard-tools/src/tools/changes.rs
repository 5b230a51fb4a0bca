//! Renders how a file would change, in a few lines for the approver.

use similar::{ChangeTag, DiffOp, TextDiff, udiff::UnifiedHunkHeader};
use std::time::Duration;

/// The most lines that are shown.
const LINES_MAX: usize = 40;

/// The most characters of a line that are shown.
const LINE_CHARS_MAX: usize = 200;

/// Texts longer than this are not compared.
const COMPARED_BYTES_MAX: usize = 1 << 20;

/// The number of equal lines that are shown around a change.
const AROUND: usize = 3;

/// How long to search for a short diff; after that a longer one is accepted.
const SEARCH: Duration = Duration::from_secs(1);

/// The changes from one text to another as a unified diff.
pub(super) fn between(now: &str, then: &str) -> String {
    if now == then {
        return "no change".to_owned();
    }
    if now.len().max(then.len()) > COMPARED_BYTES_MAX {
        return format!("{} bytes replace {}, too large to compare", then.len(), now.len());
    }
    let (now, then) = (lines(now), lines(then));
    let diff = TextDiff::configure().timeout(SEARCH).diff_slices(&now, &then);
    let mut told = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        told.push(UnifiedHunkHeader::new(&group).to_string());
        group.iter().for_each(|op| tell(&diff, op, &mut told));
    }
    shortened(told)
}

/// The text of a file that does not exist yet.
pub(super) fn new_file(text: &str) -> String {
    if text.is_empty() {
        return "new file, empty".to_owned();
    }
    let mut told = vec!["new file".to_owned()];
    told.extend(lines(text).into_iter().map(|line| of_line('+', line)));
    shortened(told)
}

/// Splits at line feeds only: any other character that moves a cursor is part of its line.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn tell(diff: &TextDiff<'_, '_, str>, op: &DiffOp, told: &mut Vec<String>) {
    for change in diff.iter_changes(op) {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        told.push(of_line(sign, change.value()));
    }
}

fn of_line(sign: char, line: &str) -> String {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, ""),
        None => (line, " [no newline at end of file]"),
    };
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((cut, _)) => {
            let more = text[cut..].chars().count();
            format!("{sign}{}… {more} more characters{end}", &text[..cut])
        }
        None => format!("{sign}{text}{end}"),
    }
}

fn shortened(mut told: Vec<String>) -> String {
    let more = told.len().saturating_sub(LINES_MAX);
    told.truncate(LINES_MAX);
    if more > 0 {
        told.push(format!("… {more} more lines"));
    }
    told.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_what_is_around_it() {
        let (now, then) = ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        assert_eq!(between(now, then), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8");
        assert_eq!(between(now, now), "no change");
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

    #[test]
    fn long_texts_and_lines_are_cut_with_what_is_left_out() {
        let told = new_file(&"x\n".repeat(100));
        assert_eq!(told.lines().count(), LINES_MAX + 1);
        assert!(told.ends_with("\n… 61 more lines"), "{told}");
        let line = new_file(&"ü".repeat(LINE_CHARS_MAX + 7));
        assert!(line.ends_with("ü… 7 more characters [no newline at end of file]"), "{line}");
        let large = "x\n".repeat(COMPARED_BYTES_MAX);
        assert_eq!(between("", &large), "2097152 bytes replace 0, too large to compare");
    }
}
