//! The body of an answer, of bounded size.

use crate::exchange::causes;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use toolyard_program::Kept;

/// A line of up to this many bytes is left out as a whole rather than in part, because the search for secrets reads a
/// line as a unit.
const LINE_MAX: usize = 8 << 10;

/// What was read of a body.
#[derive(Debug, Default)]
pub(super) struct Read {
    bytes: Vec<u8>,
    /// How many bytes it has: those that were read at least.
    total: u64,
    /// Whether the service had more to say than was kept.
    is_cut: bool,
    /// Why it broke off.
    pub(super) broke: Option<String>,
}

/// Reads a body, no further than to this size: what comes after that is not waited for.
///
/// # Cancel safety
/// Dropping the future loses the body.
pub(super) async fn read(body: impl Body<Data = Bytes, Error = hyper::Error>, most: usize) -> Read {
    let (mut read, mut body) = (Read::default(), std::pin::pin!(body));
    let announced = body.size_hint().exact();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => data,
            // Trailers say nothing that is asked for.
            Ok(Err(_)) => continue,
            Err(error) => {
                read.broke = Some(causes(&error));
                break;
            }
        };
        read.total += data.len() as u64;
        let kept = data.len().min(most - read.bytes.len());
        read.bytes.extend_from_slice(&data[..kept]);
        if kept < data.len() {
            read.is_cut = true;
            read.total = announced.unwrap_or(read.total);
            break;
        }
    }
    read
}

impl Read {
    /// The body as text: invalid bytes are replaced, and a mark says that something was left out.
    pub(super) fn into_kept(self) -> Kept {
        let Self { bytes, total, is_cut, broke } = self;
        if is_cut {
            let head = whole_lines(complete(&bytes));
            let left_out = total - head.len() as u64;
            let head = String::from_utf8_lossy(head);
            let head = head.strip_suffix('\n').unwrap_or(&head);
            let text = format!("{head}\n[… {left_out} bytes or more left out …]\n");
            return Kept { text, total, is_whole: false };
        }
        let text = String::from_utf8_lossy(&bytes);
        let is_whole = broke.is_none() && matches!(text, std::borrow::Cow::Borrowed(_));
        Kept { text: text.into_owned(), total, is_whole }
    }
}

/// The bytes without a character that is cut at their end.
fn complete(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    &bytes[..bytes.len() - if is_begun { last.len() } else { 0 }]
}

/// The bytes without the incomplete line at their end.
fn whole_lines(head: &[u8]) -> &[u8] {
    let line = head.iter().rev().take(LINE_MAX).position(|byte| *byte == b'\n');
    &head[..head.len() - line.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: &[u8], total: u64, is_cut: bool) -> Kept {
        Read { bytes: bytes.to_vec(), total, is_cut, broke: None }.into_kept()
    }

    /// SB-2: what was kept whole is as it came.
    #[test]
    fn a_whole_body_is_as_it_came() {
        assert_eq!(kept("aß\n".as_bytes(), 4, false), Kept::whole("aß\n"));
        let replaced = kept(b"a\xff", 2, false);
        assert_eq!(replaced, Kept { text: "a\u{fffd}".to_owned(), total: 2, is_whole: false });
    }

    /// SB-2, I15: what was cut says so, and has no part of a line or of a character at its end.
    #[test]
    fn a_cut_body_says_so() {
        let text = |bytes: &[u8]| kept(bytes, 100, true).text;
        assert_eq!(text(b"one\ntoken=sec"), "one\n[… 96 bytes or more left out …]\n");
        assert_eq!(text("ab€".as_bytes().split_last().unwrap().1), "ab\n[… 98 bytes or more left out …]\n");
        assert_eq!(text(b"a\xff"), "a\u{fffd}\n[… 98 bytes or more left out …]\n");
        assert!(!kept(b"", 100, true).is_whole);
    }
}
