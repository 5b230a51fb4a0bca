//! What the user types.

#![cfg_attr(not(unix), allow(dead_code, reason = "questions are asked only on Unix"))]

/// The answer to a question on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// The call may run.
    Yes,
    /// The call may not run.
    No,
    /// The call may run, and so may all others of its pattern.
    Always,
    /// No further call may run.
    Quit,
}

/// The possible answers, shown to a user who typed something else.
pub(super) const HELP: &str = "\
y  yes, this call may run
n  no, it may not; the model is told that you refused
a  always: this call and all others that match the pattern above may run, until this session ends
q  quit: no further call starts, and finished results are printed";

impl Reply {
    /// Parses the line, if it is an answer.
    pub(super) fn of(line: &str) -> Option<Self> {
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(Self::Yes),
            "n" | "no" => Some(Self::No),
            "a" | "always" => Some(Self::Always),
            "q" | "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        for (line, reply) in
            [("y\n", Reply::Yes), (" NO \r\n", Reply::No), ("Always", Reply::Always), ("q", Reply::Quit)]
        {
            assert_eq!(Reply::of(line), Some(reply), "{line:?}");
        }
        for line in ["", "\n", "yy", "ye", "y n", "yes please", "ａ", "\u{1b}y"] {
            assert_eq!(Reply::of(line), None, "{line:?}");
        }
    }
}
