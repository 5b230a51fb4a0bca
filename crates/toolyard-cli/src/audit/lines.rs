//! The lines of a log, over all its parts: one in memory at a time, each of bounded length.

use crate::{error::Error, input::Origin};
use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
};

/// The longest line, in bytes: 64 MiB.
const LINE_BYTES_MAX: usize = 64 << 20;

/// A line that is not blank.
pub(crate) struct LogLine<'a> {
    /// Its number in the log, from 1, counted over all parts.
    pub(crate) number: usize,
    /// Its text, or why it cannot be read.
    pub(crate) text: Result<&'a str, LineFault>,
    /// Whether it is the last line of a part and has no line feed: the program that wrote it may have been stopped.
    pub(crate) is_torn: bool,
}

/// Why a line has no text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineFault {
    #[error("longer than 64 MiB ({LINE_BYTES_MAX} bytes)")]
    TooLong,
    #[error("byte {0} is not valid UTF-8")]
    NotText(usize),
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl LineFault {
    /// Whether a line that breaks off may look like this.
    pub(crate) fn may_be_torn(&self) -> bool {
        matches!(self, Self::NotText(_))
    }
}

/// A part of a log, which is opened when its turn comes.
type Part = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>>>;

/// Reads a log line by line.
pub(crate) struct LogLines {
    parts: VecDeque<Part>,
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: usize,
    /// How many lines there were before each part that was opened.
    starts: Vec<usize>,
}

impl LogLines {
    /// Reads standard input, or the parts of a log, one after another.
    ///
    /// # Errors
    /// If standard input cannot be read. A part that cannot be opened is the fault of a line.
    pub(crate) fn of(origin: &Origin, files: &[PathBuf]) -> Result<Self, Error> {
        match origin {
            Origin::Stdin => {
                let reader = origin.reader()?;
                Ok(Self::new([Box::new(|| Ok(reader)) as Part]))
            }
            Origin::File(_) => Ok(Self::new(files.iter().cloned().map(part))),
        }
    }

    fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        let nothing: Box<dyn Read + Send> = Box::new(io::empty());
        let (parts, reader) = (parts.into_iter().collect(), BufReader::new(nothing));
        Self { parts, reader, line: Vec::new(), number: 0, starts: Vec::new() }
    }

    /// How many lines there were before each part that was opened.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The number of the line read last.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Reads the next line that is not blank.
    pub(crate) fn next(&mut self) -> Option<LogLine<'_>> {
        loop {
            self.line.clear();
            let mut bounded = (&mut self.reader).take(LINE_BYTES_MAX as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.line);
            self.number += 1;
            match read {
                Err(error) => return Some(self.fault(error.into())),
                Ok(0) => {
                    self.number -= 1;
                    self.starts.push(self.number);
                    match self.parts.pop_front()?() {
                        Ok(part) => self.reader = BufReader::new(part),
                        Err(error) => {
                            self.number += 1;
                            return Some(self.fault(error.into()));
                        }
                    }
                }
                Ok(_) if self.line.len() > LINE_BYTES_MAX => return Some(self.fault(LineFault::TooLong)),
                Ok(_) if self.line.trim_ascii().is_empty() => {}
                Ok(_) => return Some(self.read()),
            }
        }
    }

    fn read(&self) -> LogLine<'_> {
        let text = std::str::from_utf8(self.line.trim_ascii_end());
        let text = text.map_err(|error| LineFault::NotText(error.valid_up_to()));
        LogLine { number: self.number, text, is_torn: !self.line.ends_with(b"\n") }
    }

    fn fault(&self, fault: LineFault) -> LogLine<'_> {
        LogLine { number: self.number, text: Err(fault), is_torn: false }
    }
}

fn part(file: PathBuf) -> Part {
    Box::new(move || Ok(Box::new(File::open(file)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_count_and_the_last_may_be_torn() {
        let text = b"\na\r\n \nb\nc";
        let mut lines = LogLines::new([part(&text[..])]);
        let mut found = Vec::new();
        while let Some(line) = lines.next() {
            found.push((line.number, line.text.unwrap().to_owned(), line.is_torn));
        }
        let line = |number, text: &str, is_torn| (number, text.to_owned(), is_torn);
        assert_eq!(found, [line(2, "a", false), line(4, "b", false), line(5, "c", true)]);
    }

    #[test]
    fn parts_are_read_one_after_another() {
        let gone: Part = Box::new(|| Err(io::ErrorKind::NotFound.into()));
        let mut lines = LogLines::new([part(&b"a\nb\n"[..]), part(&b""[..]), part(&b"c"[..]), gone]);
        let mut found = Vec::new();
        while let Some(line) = lines.next() {
            found.push((line.number, line.text.is_ok(), line.is_torn));
        }
        let fault = (4, false, false);
        assert_eq!(found, [(1, true, false), (2, true, false), (3, true, true), fault]);
        assert_eq!(lines.starts()[..4], [0, 2, 2, 3]);
    }

    fn part(text: impl Read + Send + 'static) -> Part {
        Box::new(|| Ok(Box::new(text)))
    }

    #[test]
    fn a_line_has_a_bound() {
        let endless = io::repeat(b'x').take(LINE_BYTES_MAX as u64 + 10);
        let mut lines = LogLines::new([part(endless)]);
        let line = lines.next().unwrap();
        assert!(line.text.unwrap_err().to_string().starts_with("longer than 64 MiB"));
        assert!(!line.is_torn);
    }
}
