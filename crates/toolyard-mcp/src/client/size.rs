//! How long something is as JSON, without writing it.

use serde::Serialize;
use std::io;

/// It is longer than the bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The bytes of a value, if they are no more than `bytes_max`; what is beyond is not looked at.
pub(super) fn of(value: &impl Serialize, bytes_max: usize) -> Result<usize, TooLarge> {
    let mut count = Count { bytes: 0, bytes_max };
    // The only way to fail is the bound, for what came as JSON can be written as JSON.
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
