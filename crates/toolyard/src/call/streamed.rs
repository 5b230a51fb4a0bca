//! What a handler has streamed and is held back.

use toolyard_redact::Stream;

/// The streamed output of one attempt.
pub(crate) struct Streamed {
    pub(super) attempt: u32,
    pub(super) stream: Stream,
}
