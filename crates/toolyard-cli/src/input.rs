//! The input: one complete response, one that is still being streamed, or episodes line by line.

mod lines;

pub(crate) use lines::{Line, Lines};

use crate::{
    cli::{From, InputArgs},
    error::Error,
    identity::Identity,
};
use std::{
    fmt,
    fs::File,
    io::{self, BufReader, IsTerminal, Read},
    path::PathBuf,
};
use toolyard_wire::{DecodeError, bounds::BODY_BYTES_MAX, detect};

/// The input, opened.
pub(crate) enum Input {
    /// One response or batch.
    Response(String),
    /// One response as SSE text, which may still be arriving.
    Stream(Lines),
    /// One episode per line.
    Episodes(Lines),
}

/// Where the input comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// The origin that the arguments name.
    pub(crate) fn of(args: &InputArgs) -> Result<Self, Error> {
        match &args.file {
            Some(file) if file.as_os_str() == "-" => Ok(Self::Stdin),
            Some(file) => Ok(Self::File(file.clone())),
            None if io::stdin().is_terminal() => Err(Error::Usage(
                "nothing to read: name a file, pipe a response in, or give - to type one".to_owned(),
            )),
            None => Ok(Self::Stdin),
        }
    }

    /// Opens the input and detects its form. Blocks until the first bytes of SSE text, or the first line of anything
    /// else, have arrived.
    pub(crate) fn open(&self, from: From) -> Result<Input, Error> {
        let mut lines = Lines::new(BufReader::new(self.reader()?));
        if from == From::Episodes {
            return Ok(Input::Episodes(lines));
        }
        if lines.begins_like_sse().map_err(|error| self.unreadable(&error))? {
            return Ok(Input::Stream(lines));
        }
        if from == From::Auto {
            let first = lines.peek().map_err(|error| self.unreadable(&error))?;
            if detect(first) == Err(DecodeError::Episode) {
                return Ok(Input::Episodes(lines));
            }
        }
        self.read_all(lines).map(Input::Response)
    }

    /// Opens a reader of its bytes.
    pub(crate) fn reader(&self) -> Result<Box<dyn Read + Send>, Error> {
        Ok(match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(path) => Box::new(File::open(path).map_err(|error| self.unreadable(&error))?),
        })
    }

    /// Reads the remaining text to its end.
    pub(crate) fn read_all(&self, lines: Lines) -> Result<String, Error> {
        let rest = lines.rest(BODY_BYTES_MAX).map_err(|error| self.unreadable(&error))?;
        String::from_utf8(rest).map_err(|error| {
            let position = error.utf8_error().valid_up_to();
            self.error(DecodeError::NotText { position })
        })
    }

    /// The identity of the file, if it is one.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Stdin => Identity::of_stdin(),
            Self::File(path) => Identity::of_path(path),
        }
    }

    /// An error in the input.
    pub(crate) fn error(&self, why: impl fmt::Display) -> Error {
        Error::Input { place: self.to_string(), why: why.to_string() }
    }

    /// An error in one line of the input.
    pub(crate) fn line_error(&self, line: usize, why: impl fmt::Display) -> Error {
        Error::Input { place: format!("{self} line {line}"), why: why.to_string() }
    }

    /// An error while reading.
    pub(crate) fn unreadable(&self, error: &io::Error) -> Error {
        self.error(format_args!("cannot be read: {error}"))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
