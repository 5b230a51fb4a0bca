//! Text that comes in pieces: what could be the begin of a secret is held back until what follows tells.

use super::{Redactor, patterns, secrets::Secrets};

/// A word is held back until it is whole, if it is no longer than this: a pattern finds it whole or not at all.
const WORD_BYTES_MAX: usize = 8 * 1024;
/// How much of what has been shown is looked at again, for what stands before a secret, such as `password=`.
const BEFORE_BYTES: usize = 512;
/// As long as the line that ends a private key may be.
const KEY_END_BYTES: usize = 128;

/// What goes on into the next piece.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    /// A word that was shown as a secret, as far as it had come.
    Word,
    /// A private key.
    Key,
}

/// The pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The end of what has been shown, as it was.
    before: String,
    held: String,
    open: Open,
}

impl Stream {
    /// Takes a piece; gives what can be shown now, if anything.
    pub(crate) fn push(&mut self, redactor: &Redactor, piece: &str) -> Option<String> {
        self.held.push_str(piece);
        self.swallow();
        if self.open != Open::Nothing {
            return None;
        }
        let cut = self.cut(redactor);
        self.show(redactor, cut)
    }

    /// No piece follows: gives what was held back.
    pub(crate) fn finish(mut self, redactor: &Redactor) -> Option<String> {
        match self.open {
            Open::Nothing => self.show(redactor, self.held.len()),
            Open::Word | Open::Key => None,
        }
    }

    /// Drops what goes on of a secret that began in an earlier piece.
    fn swallow(&mut self) {
        let end = match self.open {
            Open::Nothing => return,
            Open::Word => self.held.find(char::is_whitespace),
            Open::Key => patterns::key_end(&self.held),
        };
        match end {
            Some(end) => {
                self.held.drain(..end);
                self.before.clear();
                self.open = Open::Nothing;
            }
            // The begin of the end may be there.
            None => keep_end(&mut self.held, if self.open == Open::Key { KEY_END_BYTES } else { 0 }),
        }
    }

    /// How much of what is held can be shown.
    fn cut(&self, redactor: &Redactor) -> usize {
        let begun = redactor.secrets.as_ref().map_or(self.held.len(), |secrets| secrets.begun_at(&self.held));
        if !redactor.patterns {
            return begun;
        }
        let last = self.held.char_indices().rev().find(|(_, char)| char.is_whitespace());
        let word = last.map_or(0, |(at, char)| at + char.len_utf8());
        match self.held.len() - word > WORD_BYTES_MAX {
            true => begun,
            false => begun.min(word),
        }
    }

    fn show(&mut self, redactor: &Redactor, cut: usize) -> Option<String> {
        if cut == 0 {
            return None;
        }
        let shown_before = self.before.len();
        let text = std::mem::take(&mut self.before) + &self.held;
        let at = shown_before + cut;
        let spans = redactor.spans(&text);
        let shown = redactor.text(&spans.replace(&text, shown_before..at)).into_owned();
        self.held.drain(..cut);
        if redactor.patterns && patterns::key_is_open(&text[..at]) {
            self.open = Open::Key;
        } else if redactor.patterns && self.held.is_empty() && spans.end() == Some(text.len()) {
            self.open = Open::Word;
        }
        self.before = text;
        self.before.truncate(at);
        let longest = redactor.secrets.as_deref().map_or(0, Secrets::longest);
        keep_end(&mut self.before, BEFORE_BYTES.max(longest));
        (!shown.is_empty()).then_some(shown)
    }
}

/// Keeps the last bytes of a text, or a few more where those would begin inside a character.
fn keep_end(text: &mut String, bytes: usize) {
    let from = text.floor_char_boundary(text.len().saturating_sub(bytes));
    text.drain(..from);
}
