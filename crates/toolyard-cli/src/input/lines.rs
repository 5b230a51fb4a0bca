//! Lines of input: any number, one in memory at a time, each of bounded length.

use std::io::{self, BufRead, BufReader, Read};
use toolyard_wire::{begins_like_sse, bounds::BODY_BYTES_MAX};

/// One line that is not blank.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Its text, or why it cannot be read.
    pub(crate) text: Result<String, LineError>,
}

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// More bytes than a response may have.
    #[error("the line is longer than {BODY_BYTES_MAX} bytes: split the episode")]
    TooLong,
    /// Not UTF-8.
    #[error("byte {0} is not valid UTF-8: save the file as UTF-8")]
    NotText(usize),
    /// The line could not be read, and neither can anything after it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Reads input line by line.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    /// Bytes read ahead to detect the format: blank lines, and all or the start of the first other line.
    lookahead: Vec<u8>,
    number: usize,
    failed: bool,
}

impl Lines {
    /// The lines of this reader.
    pub(crate) fn new(reader: BufReader<Box<dyn Read + Send>>) -> Self {
        Self { reader, lookahead: Vec::new(), number: 0, failed: false }
    }

    /// Whether this is SSE text. Reads only the bytes that decide it, and keeps them.
    pub(crate) fn begins_like_sse(&mut self) -> io::Result<bool> {
        let mut begin = 0;
        while self.lookahead.len() <= BODY_BYTES_MAX {
            begin += leading_blank(&self.lookahead[begin..]);
            if let Some(found) = begins_like_sse(&self.lookahead[begin..]) {
                return Ok(found);
            }
            // Byte by byte up to the first line that is not blank, because more may not have arrived yet.
            let next = fill(&mut self.reader)?.first().copied();
            let Some(next) = next else { break };
            self.reader.consume(1);
            self.lookahead.push(next);
        }
        Ok(false)
    }

    /// Takes the bytes that have arrived so far, at least one; empty at the end.
    pub(crate) fn chunk(&mut self) -> io::Result<Vec<u8>> {
        if !self.lookahead.is_empty() {
            return Ok(std::mem::take(&mut self.lookahead));
        }
        let chunk = fill(&mut self.reader)?.to_vec();
        self.reader.consume(chunk.len());
        Ok(chunk)
    }

    /// Peeks at the first line that is not blank, cut off at the bound; empty if it is not UTF-8.
    pub(crate) fn peek(&mut self) -> io::Result<&str> {
        let begin = self.lookahead.iter().rposition(|byte| *byte == b'\n');
        let mut at = begin.map_or(0, |end| end + 1);
        loop {
            let read = read_line(&mut self.reader, &mut self.lookahead)?;
            let is_enough = read == 0 || self.lookahead.len() > BODY_BYTES_MAX;
            if is_enough || !self.lookahead[at..].trim_ascii().is_empty() {
                break;
            }
            at = self.lookahead.len();
        }
        Ok(std::str::from_utf8(&self.lookahead[at..]).unwrap_or_default())
    }

    /// Reads everything that is left, up to one byte more than `bytes_max`.
    pub(crate) fn rest(self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut text = self.lookahead;
        let left = (bytes_max + 1).saturating_sub(text.len());
        self.reader.take(left as u64).read_to_end(&mut text)?;
        Ok(text)
    }

    /// The bytes of the next line, starting with those read ahead.
    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let end = self.lookahead.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        if let Some(end) = end {
            let rest = self.lookahead.split_off(end);
            return Ok(std::mem::replace(&mut self.lookahead, rest));
        }
        // A line read ahead without its end was cut at the bound, or ends the file.
        let mut line = std::mem::take(&mut self.lookahead);
        if line.is_empty() {
            read_line(&mut self.reader, &mut line)?;
        }
        if line.len() > BODY_BYTES_MAX && !line.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
        }
        Ok(line)
    }
}

/// The number of leading bytes to skip: white space and a byte order mark.
fn leading_blank(bytes: &[u8]) -> usize {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    bytes.len() - text.trim_ascii_start().len()
}

/// The bytes that have arrived; empty at the end.
fn fill(reader: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    reader.fill_buf()
}

/// Reads to the end of the line, but at most one byte over the bound.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    reader.take(BODY_BYTES_MAX as u64 + 1).read_until(b'\n', line)
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        while !self.failed {
            self.number += 1;
            let number = self.number;
            let bytes = match self.bytes() {
                Ok(bytes) if bytes.is_empty() => return None,
                Ok(bytes) if leading_blank(&bytes) == bytes.len() => continue,
                Ok(bytes) if bytes.len() > BODY_BYTES_MAX => {
                    return Some(Line { number, text: Err(LineError::TooLong) });
                }
                Ok(bytes) => bytes,
                Err(error) => {
                    self.failed = true;
                    return Some(Line { number, text: Err(error.into()) });
                }
            };
            let text = String::from_utf8(bytes.trim_ascii_end().to_vec());
            let text = text.map_err(|error| LineError::NotText(error.utf8_error().valid_up_to()));
            return Some(Line { number, text });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &'static [u8]) -> Lines {
        Lines::new(BufReader::new(Box::new(bytes)))
    }

    fn numbers_and_texts(lines: Lines) -> Vec<(usize, Option<String>)> {
        lines.map(|line| (line.number, line.text.ok())).collect()
    }

    #[test]
    fn blank_lines_count_and_are_passed_over() {
        let found = numbers_and_texts(lines(b"\n  \na\r\n\nb"));
        assert_eq!(found, [(3, Some("a".to_owned())), (5, Some("b".to_owned()))]);
    }

    #[test]
    fn a_look_ahead_takes_nothing_away() {
        let mut looked = lines(b"\n\na\nb\n");
        assert_eq!(looked.peek().unwrap(), "a\n");
        assert_eq!(numbers_and_texts(looked), [(3, Some("a".to_owned())), (4, Some("b".to_owned()))]);
        let mut looked = lines(b"\n{\n}");
        looked.peek().unwrap();
        assert_eq!(looked.rest(100).unwrap(), b"\n{\n}");
    }

    #[test]
    fn the_first_bytes_tell_sse_and_stay() {
        let check = |text: &'static [u8], expect: bool| {
            let mut looked = lines(text);
            assert_eq!(looked.begins_like_sse().unwrap(), expect, "{text:?}");
            assert_eq!(looked.rest(100).unwrap(), text);
        };
        check(b"data: {}\n", true);
        check(b"\n \r\n: ping\n", true);
        check("\u{feff}\n  event: x\n".as_bytes(), true);
        check(b"\n{\"data:\":1}", false);
        check(b"date: 1", false);
        check(b"dat", false);
        check(b"\n ", false);
        let mut looked = lines(b"\n id 7\nb\n");
        assert!(!looked.begins_like_sse().unwrap());
        assert_eq!(looked.peek().unwrap(), " id 7\n");
        let mut looked = lines(b"\n\ndata: x\ny");
        looked.begins_like_sse().unwrap();
        let chunks: Vec<_> = std::iter::repeat_with(|| looked.chunk().unwrap()).take(3).collect();
        assert_eq!(chunks, [&b"\n\ndata:"[..], b" x\ny", b""]);
    }

    #[test]
    fn a_line_that_is_no_text_costs_no_other() {
        let found = numbers_and_texts(lines(b"a\n\xff\nb\n"));
        assert_eq!(found, [(1, Some("a".to_owned())), (2, None), (3, Some("b".to_owned()))]);
    }
}
