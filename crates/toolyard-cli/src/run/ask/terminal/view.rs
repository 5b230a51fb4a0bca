//! Shows a whole call, one screen at a time, so that nothing of it scrolls away before it was in view.

use super::{Input, Over, Page, Question, discard_input, size};
use std::{
    fs::File,
    io::{self, Write},
};

/// The rows of a screen that are left for the prompt below a page.
const PROMPT_ROWS: usize = 2;

/// The fewest lines of a page, however small the screen is.
const PAGE_LINES_MIN: usize = 5;

/// How much of a call was viewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Viewed {
    /// All of it.
    Whole,
    /// The user went back to the question before the end.
    Part,
}

impl Viewed {
    pub(super) fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

impl Question {
    /// Shows the whole call that this is the page of. An empty line leads to the next page, any other one back to the
    /// question.
    pub(super) fn view(&self, mut tty: &File, page: &Page) -> io::Result<Result<Viewed, Over>> {
        let (width, height) = size(tty);
        let text = page.render_whole(width);
        let lines: Vec<&str> = text.lines().collect();
        let mut shown = 0;
        for page in lines.chunks(height.saturating_sub(PROMPT_ROWS).max(PAGE_LINES_MIN)) {
            tty.write_all(page.join("\n").as_bytes())?;
            shown += page.len();
            if shown == lines.len() {
                break;
            }
            let prompt = format!("\n  line {shown} of {}; Enter for more, q for the question: ", lines.len());
            discard_input(tty)?;
            tty.write_all(prompt.as_bytes())?;
            match self.input(tty)? {
                Input::Line(line) if line.trim().is_empty() => {}
                Input::Line(_) => return Ok(Ok(Viewed::Part)),
                Input::Over(over) => return Ok(Err(over)),
            }
        }
        tty.write_all(b"\n")?;
        Ok(Ok(Viewed::Whole))
    }
}
