//! What the user types.

#![cfg_attr(not(unix), allow(dead_code, reason = "questions are asked only on Unix"))]

use serde_json::Value;
use std::sync::Arc;

/// The answer to a question on the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The call may run.
    Yes,
    /// The call may not run, for this reason if one was typed.
    No(Option<String>),
    /// The call may run with these arguments.
    Edited(Arc<Value>),
    /// The call may run, and so may all others of its pattern.
    Always,
    /// Neither the call nor any other of its pattern may run, for this reason if one was typed.
    Never(Option<String>),
    /// No further call may run.
    Quit,
}

/// What the user types at a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// An answer.
    Reply(Reply),
    /// The user wants to see the whole call first.
    View,
    /// The user wants to change the arguments.
    Edit,
}

/// The possible answers, shown to a user who typed something else.
pub(super) const HELP: &str = "\
y  yes, this call may run
n  no, it may not; the model is told that you refused, and why if you add that: n, it is too late
e  edit: the arguments are changed, in $VISUAL or $EDITOR if there is one; the call runs with them after a y
a  always: this call and all others that match the pattern above may run, until this session ends
never  neither this call nor any other that matches the pattern may run, until this session ends
v  view: the whole call is shown, page by page; needed before y or a if anything of it was left out
q  quit: no further call starts, and finished results are printed";

impl Typed {
    /// Parses the line, if it means anything.
    pub(super) fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let (word, rest) = line.split_at(line.find([' ', ',', ':']).unwrap_or(line.len()));
        let rest = rest.trim_start_matches([' ', ',', ':']);
        let word = word.to_ascii_lowercase();
        let reason = (!rest.is_empty()).then(|| rest.to_owned());
        match word.as_str() {
            "n" | "no" => return Some(Self::Reply(Reply::No(reason))),
            "never" => return Some(Self::Reply(Reply::Never(reason))),
            _ => {}
        }
        if !rest.is_empty() {
            return None;
        }
        match word.as_str() {
            "y" | "yes" => Some(Self::Reply(Reply::Yes)),
            "a" | "always" => Some(Self::Reply(Reply::Always)),
            "v" | "view" => Some(Self::View),
            "e" | "edit" => Some(Self::Edit),
            "q" | "quit" => Some(Self::Reply(Reply::Quit)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        for (line, reply) in [
            ("y\n", Reply::Yes),
            (" NO \r\n", Reply::No(None)),
            ("Always", Reply::Always),
            ("never", Reply::Never(None)),
            ("Never: not here", Reply::Never(Some("not here".to_owned()))),
            ("q", Reply::Quit),
        ] {
            assert_eq!(Typed::of(line), Some(Typed::Reply(reply)), "{line:?}");
        }
        assert_eq!(Typed::of("V\n"), Some(Typed::View));
        assert_eq!(Typed::of("edit\n"), Some(Typed::Edit));
        // SM-5: the model reads why.
        for line in ["n, it is Friday\n", "no: it is Friday", "N it is Friday "] {
            let no = Reply::No(Some("it is Friday".to_owned()));
            assert_eq!(Typed::of(line), Some(Typed::Reply(no)), "{line:?}");
        }
        for line in ["", "\n", "yy", "ye", "y n", "yes please", "ａ", "\u{1b}y"] {
            assert_eq!(Typed::of(line), None, "{line:?}");
        }
    }
}
