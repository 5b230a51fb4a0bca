//! The verdict: new counts compared with the kept ones, and which cases became more or less expensive.

use crate::{case::FLOOR, figures::Counts};
use std::fmt::{self, Write as _};

/// In percent: growth by this much fails, and shrinkage by this much is reported.
const TOLERANCE: f64 = 5.0;

/// How one case has changed.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Change {
    Same,
    Grown,
    Shrunk,
    /// Counted, but has no kept figure.
    New,
    /// Kept, but not counted any more.
    Missing,
}

struct Line {
    case: String,
    kept: Option<u64>,
    counted: Option<u64>,
}

impl Line {
    /// The change in percent of the kept count.
    #[expect(clippy::cast_precision_loss, reason = "instructions of a call are far below 2^52")]
    fn percent(&self) -> Option<f64> {
        let (kept, counted) = (self.kept? as f64, self.counted? as f64);
        Some((counted / kept.max(1.0) - 1.0) * 100.0)
    }

    fn change(&self) -> Change {
        match (self.kept, self.percent()) {
            (_, Some(percent)) if percent >= TOLERANCE => Change::Grown,
            (_, Some(percent)) if percent <= -TOLERANCE => Change::Shrunk,
            (_, Some(_)) => Change::Same,
            (Some(_), None) => Change::Missing,
            (None, None) => Change::New,
        }
    }
}

/// The comparison of all cases.
pub(crate) struct Verdict {
    lines: Vec<Line>,
}

/// Compares, case by case.
pub(crate) fn compare(kept: &Counts, counted: &Counts) -> Verdict {
    let mut cases: Vec<_> = kept.keys().chain(counted.keys()).cloned().collect();
    cases.sort();
    cases.dedup();
    let line =
        |case: String| Line { kept: kept.get(&case).copied(), counted: counted.get(&case).copied(), case };
    Verdict { lines: cases.into_iter().map(line).collect() }
}

impl Verdict {
    fn has(&self, change: Change) -> bool {
        self.lines.iter().any(|line| line.change() == change)
    }

    /// Whether nothing became more expensive and the counted cases are the kept ones.
    pub(crate) fn holds(&self) -> bool {
        !(self.has(Change::Grown) || self.has(Change::New) || self.has(Change::Missing))
    }

    fn floor_moved(&self) -> bool {
        self.lines.iter().any(|line| line.case == FLOOR && line.percent().is_some_and(|by| by.abs() >= 2.0))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12} {:>8} {:>8}", "instructions", "kept", "now")?;
        for line in &self.lines {
            let number = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
            write!(f, "{:<12} {:>8} {:>8}", line.case, number(line.kept), number(line.counted))?;
            if let Some(percent) = line.percent() {
                write!(f, " {percent:>+7.1} %")?;
            }
            writeln!(f, "{}", remark(line.change()))?;
        }
        if self.floor_moved() {
            f.write_str(FLOOR_MOVED)?;
        }
        if !self.holds() {
            f.write_str(FAILED)?;
        } else if self.has(Change::Shrunk) {
            f.write_str(IMPROVED)?;
        }
        Ok(())
    }
}

fn remark(change: Change) -> &'static str {
    match change {
        Change::Same => "",
        Change::Grown => "  more expensive",
        Change::Shrunk => "  cheaper",
        Change::New => "  has no figure",
        Change::Missing => "  no longer counted",
    }
}

const FLOOR_MOVED: &str = "\
the floor has changed, which contains none of our code: tokio, the C library, valgrind or the processor is different
";
const FAILED: &str = "\
calls cost more than recorded: if that is intended, run `.ci/guard --update` and say why in the commit
";
const IMPROVED: &str = "calls cost less than recorded: run `.ci/guard --update` to keep it that way\n";

/// The text printed if no figures exist for this compiler.
pub(crate) fn unknown(key: &str, counted: &Counts) -> String {
    let mut text =
        format!("no figures for '{key}', so nothing is compared; `.ci/guard --update` adds these:\n");
    for (case, count) in counted {
        let _ = writeln!(text, "{case:<12} {count:>8}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u64)]) -> Counts {
        counts.iter().map(|(case, count)| ((*case).to_owned(), *count)).collect()
    }

    fn one(kept: u64, counted: u64) -> Verdict {
        compare(&counts(&[("full 1", kept)]), &counts(&[("full 1", counted)]))
    }

    #[test]
    fn five_percent_more_fails_and_less_than_that_does_not() {
        assert!(!one(1000, 1050).holds());
        assert!(one(1000, 1050).to_string().contains("more expensive"));
        assert!(one(1000, 1049).holds());
        assert!(one(1000, 1000).holds());
    }

    #[test]
    fn five_percent_less_holds_and_is_told() {
        let text = one(1000, 950).to_string();
        assert!(one(1000, 950).holds());
        assert!(text.contains("cheaper") && text.contains(IMPROVED), "{text}");
        assert!(!one(1000, 951).to_string().contains("cheaper"));
    }

    #[test]
    fn one_dearer_case_fails_however_cheap_the_others_are() {
        let kept = counts(&[("a", 1000), ("b", 1000)]);
        let verdict = compare(&kept, &counts(&[("a", 500), ("b", 1100)]));
        assert!(!verdict.holds());
        assert!(!verdict.to_string().contains(IMPROVED));
    }

    #[test]
    fn a_case_without_figure_or_count_fails() {
        let (kept, counted) = (counts(&[("a", 1), ("b", 1)]), counts(&[("b", 1), ("c", 1)]));
        let verdict = compare(&kept, &counted);
        assert!(!verdict.holds());
        let text = verdict.to_string();
        assert!(text.contains("has no figure") && text.contains("no longer counted"), "{text}");
    }

    #[test]
    fn a_floor_that_moves_is_told_for_it_is_not_ours() {
        let verdict = compare(&counts(&[(FLOOR, 1000)]), &counts(&[(FLOOR, 1021)]));
        assert!(verdict.holds());
        assert!(verdict.to_string().contains("the floor has"));
        assert!(!one(1000, 1021).to_string().contains("the floor has"));
    }

    #[test]
    fn on_another_compiler_the_counts_are_told() {
        let text = unknown("rustc 9 x86_64", &counts(&[("full 1", 4000)]));
        assert!(text.contains("rustc 9 x86_64") && text.contains("4000"), "{text}");
    }
}
