//! Keeps the head and the tail of an output.

use crate::utf8::{complete_len, continuation_len};
use std::collections::VecDeque;

/// A line of up to this many bytes is left out as a whole rather than in part, because people, and the search for
/// secrets, read a line as a unit.
const LINE_MAX: usize = 8 * 1024;

/// The head and the tail of an output of any length, in bounded memory.
///
/// # Examples
/// ```
/// use toolyard_process::HeadTail;
/// let mut kept = HeadTail::new(8);
/// kept.push(b"abcdef");
/// kept.push(b"ghij");
/// assert_eq!(kept.total(), 10);
/// assert_eq!(kept.into_text(), "abcd\n[… 2 bytes left out …]\nghij");
/// ```
#[derive(Debug, Clone)]
pub struct HeadTail {
    head: Vec<u8>,
    head_max: usize,
    /// The last bytes after the head.
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps up to this many bytes, half of them at each end.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let head_max = most / 2;
        Self { head: Vec::new(), head_max, tail: VecDeque::new(), tail_max: most - head_max, total: 0 }
    }

    /// Adds output. Costs no more than the bytes that are kept of it.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.head_max - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// The number of bytes that were added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All bytes, if none was left out.
    ///
    /// # Errors
    /// The ends, if some were.
    pub fn into_whole(self) -> Result<Vec<u8>, Self> {
        if self.total != (self.head.len() + self.tail.len()) as u64 {
            return Err(self);
        }
        let mut whole = self.head;
        whole.extend(self.tail);
        Ok(whole)
    }

    /// The output as text: invalid bytes are replaced, and a mark says how many were left out in the middle. Lines of up to
    /// 8 KiB and characters are left out as a whole.
    pub fn into_text(self) -> String {
        let mut whole = self.head;
        let tail = Vec::from(self.tail);
        if self.total == (whole.len() + tail.len()) as u64 {
            whole.extend_from_slice(&tail);
            return text(&whole);
        }
        let head = whole_lines(&whole[..complete_len(&whole)]);
        let tail = from_a_line(&tail[continuation_len(&tail)..]);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let head = text(head);
        let head = head.strip_suffix('\n').unwrap_or(&head);
        format!("{head}\n[… {left_out} bytes left out …]\n{}", text(tail))
    }
}

/// The head without the incomplete line at its end.
fn whole_lines(head: &[u8]) -> &[u8] {
    let line = head.iter().rev().take(LINE_MAX).position(|byte| *byte == b'\n');
    &head[..head.len() - line.unwrap_or(0)]
}

/// The tail without the incomplete line at its start.
fn from_a_line(tail: &[u8]) -> &[u8] {
    let line = tail.iter().take(LINE_MAX).position(|byte| *byte == b'\n');
    &tail[line.map_or(0, |at| at + 1)..]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: usize, pieces: &[&[u8]]) -> String {
        let mut kept = HeadTail::new(most);
        pieces.iter().for_each(|piece| kept.push(piece));
        kept.into_text()
    }

    #[test]
    fn what_fits_is_whole() {
        assert_eq!(kept(8, &[b"abcd", b"efgh"]), "abcdefgh");
        assert_eq!(kept(9, &[b"a", b"", b"bcdefgh"]), "abcdefgh");
        assert_eq!(kept(8, &[]), "");
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        let expect = "abcd\n[… 2 bytes left out …]\nghij";
        assert_eq!(kept(8, &[b"abcdefghij"]), expect);
        assert_eq!(kept(8, &[b"ab", b"cdefg", b"h", b"ij"]), expect);
    }

    /// I15: a line is not cut in two.
    #[test]
    fn lines_are_left_out_as_a_whole() {
        let output = b"one\ntoken=secret\nthree\ntoken=secret\nfive\n";
        assert_eq!(kept(24, &[output]), "one\n[… 32 bytes left out …]\nfive\n");
    }

    #[test]
    fn characters_are_whole_across_pieces_and_at_the_cuts() {
        let euro = "€".as_bytes();
        assert_eq!(kept(64, &[&euro[..1], &euro[1..2], &euro[2..]]), "€");
        assert_eq!(kept(8, &["€€€€€€".as_bytes()]), "€\n[… 12 bytes left out …]\n€");
        assert_eq!(kept(8, &[b"a\xFFb"]), "a\u{FFFD}b");
    }

    #[test]
    fn a_flood_is_held_in_what_is_kept() {
        let mut kept = HeadTail::new(100);
        (0..10_000).for_each(|_| kept.push(&[b'x'; 1000]));
        assert!(kept.head.capacity() <= 128 && kept.tail.capacity() <= 256);
        assert_eq!(kept.total(), 10_000_000);
    }
}
