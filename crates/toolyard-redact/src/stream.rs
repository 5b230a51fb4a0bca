//! Text that arrives in pieces: what may be the start of a secret is held back until later pieces tell.

use super::{Redactor, patterns, secrets::Secrets};

/// Words up to this length are held back until they are complete, because a pattern finds a token whole or not at
/// all.
const WORD_BYTES_MAX: usize = 8 * 1024;
/// How much shown text is searched again, for the context of a secret such as `password=`.
const BEFORE_BYTES: usize = 512;
/// The longest possible line that ends a private key.
const KEY_END_BYTES: usize = 128;

/// A secret that continues in the next piece.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    /// A word whose start has been replaced by a mark.
    Word,
    /// A private key.
    Key,
}

/// Redacts one text that arrives in pieces. A secret is found wherever it is cut.
///
/// # Examples
/// ```
/// use toolyard_redact::{Redactor, Stream};
/// let redactor = Redactor::new().with_secret("correct horse")?;
/// let mut stream = Stream::default();
/// let mut shown = stream.push(&redactor, "it is corr").unwrap_or_default();
/// shown += &stream.push(&redactor, "ect horse, I think").unwrap_or_default();
/// shown += &stream.finish(&redactor).unwrap_or_default();
/// assert_eq!(shown, "it is [redacted], I think");
/// # Ok::<(), toolyard_redact::SecretError>(())
/// ```
#[derive(Debug, Default)]
pub struct Stream {
    /// The end of the text that has been shown, unredacted.
    before: String,
    held: String,
    open: Open,
}

impl Stream {
    /// Takes a piece; returns what can be shown now, if anything.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> Option<String> {
        self.held.push_str(piece);
        self.swallow();
        if self.open != Open::Nothing {
            return None;
        }
        let cut = self.cut(redactor);
        self.show(redactor, cut)
    }

    /// Ends the text; returns what was held back.
    pub fn finish(mut self, redactor: &Redactor) -> Option<String> {
        match self.open {
            Open::Nothing => self.show(redactor, self.held.len()),
            Open::Word | Open::Key => None,
        }
    }

    /// Drops the continuation of a secret that started in an earlier piece.
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
            // The start of a key's end line may have arrived.
            None => keep_end(&mut self.held, if self.open == Open::Key { KEY_END_BYTES } else { 0 }),
        }
    }

    /// How much of the held text can be shown.
    fn cut(&self, redactor: &Redactor) -> usize {
        let begun = redactor
            .secrets
            .as_ref()
            .map_or(self.held.len(), |secrets| secrets.partial_match_start(&self.held));
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

/// Keeps the last bytes of a text, and a few more if those would start inside a character.
fn keep_end(text: &mut String, bytes: usize) {
    let from = text.floor_char_boundary(text.len().saturating_sub(bytes));
    text.drain(..from);
}
