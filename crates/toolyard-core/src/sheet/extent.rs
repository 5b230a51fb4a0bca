//! How much of a call one page shows.

/// How much of a call is shown. What is cut is shown with its start, its end, and how much is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// As much as fits on a page.
    Cut,
    /// Everything.
    Whole,
}

impl Extent {
    /// The number of characters shown of a name.
    pub(super) const fn name_chars_max(self) -> usize {
        self.at_most(120)
    }

    /// The number of characters shown of one text in the arguments.
    pub(super) const fn text_chars_max(self) -> usize {
        self.at_most(800)
    }

    /// The number of characters shown of a pattern, or of a line of changes.
    pub(super) const fn line_chars_max(self) -> usize {
        self.at_most(400)
    }

    /// The lines that are shown of the arguments, or of the changes.
    pub(super) fn lines(self, mut lines: Vec<String>) -> Vec<String> {
        let lines_max = self.at_most(60);
        let more = lines.len().saturating_sub(lines_max);
        if more > 0 {
            let head = lines_max - lines_max / 4;
            lines.splice(head..head + more, [format!("… {more} more lines …")]);
        }
        lines
    }

    const fn at_most(self, of_a_page: usize) -> usize {
        match self {
            Self::Cut => of_a_page,
            Self::Whole => usize::MAX,
        }
    }
}
