//! Splits the output, as it arrives, into pieces that a reader of events can show.

use crate::utf8::complete_len;

/// The longest piece of output, in bytes: as many whole lines as fit, or part of a longer line.
pub const DELTA_BYTES_MAX: usize = 8 << 10;

/// The most bytes of one output that are split into pieces; after them one line says that there is more.
pub const DELTAS_BYTES_MAX: usize = 256 << 10;

/// The line that replaces output beyond that bound.
const LIMIT_NOTE: &str = "[further output is not streamed; the result contains its end]\n";

/// Splits output into pieces of valid text, at line ends where possible. Each piece and their total are bounded:
/// [`DELTA_BYTES_MAX`], [`DELTAS_BYTES_MAX`].
///
/// # Examples
/// ```
/// use toolyard_process::Deltas;
/// let (mut deltas, mut shown) = (Deltas::default(), Vec::new());
/// deltas.push(b"one\ntw", |piece| shown.push(piece.to_owned()));
/// deltas.push(b"o\nthree", |piece| shown.push(piece.to_owned()));
/// deltas.finish(|piece| shown.push(piece.to_owned()));
/// assert_eq!(shown, ["one\n", "two\n", "three"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Deltas {
    /// The output since the last line end; at most one piece and one read.
    pending: Vec<u8>,
    sent: usize,
    full: bool,
}

impl Deltas {
    /// Adds output, and emits the pieces that are complete.
    pub fn push(&mut self, bytes: &[u8], emit: impl FnMut(&str)) {
        if self.full {
            return;
        }
        self.pending.extend_from_slice(bytes);
        self.emit(false, emit);
    }

    /// Emits the rest: the output has ended.
    pub fn finish(&mut self, emit: impl FnMut(&str)) {
        if !self.full {
            self.emit(true, emit);
        }
    }

    fn emit(&mut self, all: bool, mut emit: impl FnMut(&str)) {
        let mut emitted = 0;
        while let Some(length) = piece(&self.pending[emitted..], all) {
            if self.sent + length > DELTAS_BYTES_MAX {
                self.full = true;
                self.pending = Vec::new();
                return emit(LIMIT_NOTE);
            }
            let piece = &self.pending[emitted..emitted + length];
            emit(&String::from_utf8_lossy(piece));
            emitted += length;
            self.sent += length;
        }
        self.pending.drain(..emitted);
    }
}

/// The length of the next piece, if one is complete.
fn piece(pending: &[u8], all: bool) -> Option<usize> {
    let window = &pending[..pending.len().min(DELTA_BYTES_MAX)];
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if all && pending.len() <= DELTA_BYTES_MAX {
        return (!pending.is_empty()).then_some(pending.len());
    }
    let lines = window.iter().rposition(is_end).map(|at| at + 1);
    lines.or_else(|| (window.len() == DELTA_BYTES_MAX).then(|| complete_len(window)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deltas(pieces: &[&[u8]]) -> Vec<String> {
        let (mut deltas, mut emitted) = (Deltas::default(), Vec::new());
        pieces.iter().for_each(|piece| deltas.push(piece, |text| emitted.push(text.to_owned())));
        deltas.finish(|text| emitted.push(text.to_owned()));
        emitted
    }

    #[test]
    fn lines_stay_whole_and_the_last_needs_no_end() {
        assert_eq!(deltas(&[b"a", b"b\nc", b"\nd\ne"]), ["ab\n", "c\nd\n", "e"]);
        assert_eq!(deltas(&[b"a\nb\nc\n"]), ["a\nb\nc\n"]);
        assert_eq!(deltas(&[b"10%\r", b"20%\r"]), ["10%\r", "20%\r"]);
        assert!(deltas(&[b""]).is_empty());
    }

    #[test]
    fn a_character_that_comes_in_two_readings_is_one() {
        let euro = "€\n".as_bytes();
        assert_eq!(deltas(&[&euro[..2], &euro[2..]]), ["€\n"]);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = "€".repeat(DELTA_BYTES_MAX);
        let emitted = deltas(&[line.as_bytes()]);
        assert!(emitted.iter().all(|piece| piece.len() <= DELTA_BYTES_MAX && !piece.contains('\u{FFFD}')));
        assert_eq!(emitted.concat(), line);
    }

    #[test]
    fn a_flood_is_told_up_to_its_bound() {
        let mut deltas = Deltas::default();
        let (mut emitted, mut last) = (0, String::new());
        for _ in 0..10_000 {
            deltas.push(&[b'x'; 1000], |text| (emitted, last) = (emitted + text.len(), text.to_owned()));
        }
        assert!(emitted <= DELTAS_BYTES_MAX + LIMIT_NOTE.len());
        assert_eq!(last, LIMIT_NOTE);
        assert_eq!(deltas.pending.capacity(), 0);
    }
}
