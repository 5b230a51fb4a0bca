//! What a program printed, as the contract reads it.

use toolyard_process::HeadTail;
use toolyard_program::Kept;

/// How many bytes of standard error are kept for errors: half of them from its start, half from its end.
pub(crate) const ERRORS_BYTES: usize = 8 << 10;

/// Its standard output: whole if nothing of it is missing and all of it is text.
pub(crate) fn kept(output: HeadTail) -> Kept {
    let total = output.total();
    let (text, is_whole) = match output.into_whole() {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        },
        Err(ends) => (ends.into_text(), false),
    };
    Kept { text, total, is_whole }
}
