//! Measures the size of a value as JSON, without writing it.

use serde::Serialize;
use std::io;

/// The value is larger than the bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The size of a value in bytes, if it is at most `bytes_max`; nothing beyond that is visited.
pub(crate) fn of(value: &impl Serialize, bytes_max: usize) -> Result<usize, TooLarge> {
    let mut count = Count { bytes: 0, bytes_max };
    // Only the bound can fail, because values that came as JSON can be written as JSON.
    serde_json::to_writer(&mut count, value).map_err(|_| TooLarge)?;
    Ok(count.bytes)
}

struct Count {
    bytes: usize,
    bytes_max: usize,
}

impl io::Write for Count {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.bytes += piece.len();
        match self.bytes > self.bytes_max {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(piece.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_fits() {
        assert_eq!(of(&"abc", 5), Ok(5));
        assert_eq!(of(&"abcd", 5), Err(TooLarge));
    }
}
