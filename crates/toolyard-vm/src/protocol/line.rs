//! Lines of bounded length.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, Read as _};

/// The most bytes of a line. The longest that are sent hold a piece of content, or all arguments and variables of a
/// program.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// A message as a line.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for one that is longer than [`LINE_BYTES_MAX`].
///
/// # Examples
/// ```
/// use toolyard_vm::protocol::{FromGuest, line, read_line};
/// let hello = FromGuest::Hello { version: 1 };
/// let text = line(&hello).unwrap();
/// assert_eq!(text, b"{\"hello\":{\"version\":1}}\n");
/// assert_eq!(read_line::<FromGuest>(&mut &text[..]).unwrap(), hello);
/// ```
pub fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > LINE_BYTES_MAX {
        let why = format!("{} bytes in one message, and at most {LINE_BYTES_MAX} are possible", line.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(line)
}

/// Reads the message in the next line.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] at the end, [`io::ErrorKind::InvalidData`] for a line that is too long or no such
/// message, and errors of the reader.
pub fn read_line<T: DeserializeOwned>(reader: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    reader.by_ref().take(most).read_until(b'\n', &mut line)?;
    match line.last() {
        Some(b'\n') => Ok(serde_json::from_slice(&line)?),
        _ if line.len() < LINE_BYTES_MAX => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Bytes, FromGuest};

    /// SB-7: neither side can make the other keep more than one line.
    #[test]
    fn a_line_is_bounded_on_both_sides() {
        let content = FromGuest::Content(Bytes(vec![0; LINE_BYTES_MAX]));
        assert_eq!(line(&content).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let endless = vec![b' '; LINE_BYTES_MAX + 1];
        let error = read_line::<FromGuest>(&mut &endless[..]).unwrap_err();
        assert_eq!(error.to_string(), "a message is too long");
    }

    #[test]
    fn what_is_cut_off_or_foreign_is_no_message() {
        let kind = |text: &[u8]| read_line::<FromGuest>(&mut &text[..]).unwrap_err().kind();
        assert_eq!(kind(b""), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"\"done\""), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"{\"content\":\"*\"}\n"), io::ErrorKind::InvalidData);
        assert_eq!(kind(b"\"gone\"\n"), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_piece_of_content_fits() {
        let content = FromGuest::Content(Bytes(vec![255; crate::protocol::PIECE_BYTES]));
        assert_eq!(read_line::<FromGuest>(&mut &line(&content).unwrap()[..]).unwrap(), content);
    }
}
