//! What an earlier life of the server has left, and how this one goes on with it (JR-8, JR-10, HT-13).
//!
//! ```text
//!   POST /sessions ─► session ◄─ described by ─ owner, what was asked for
//!                        │ crash, deploy
//!   recover ─► sessions, with the terms that their tokens have now ─► agents ─► open turns ─► they go on
//!   GET  …/turns/N ─► not here ─► recall ─► the turn, from its records
//!   POST …/turns, a key that is known ─► repeated ─► the turn that it has made
//! ```

mod description;
mod recall;
mod recover;
mod taken_up;

pub(crate) use description::{Description, may_open};
pub(crate) use recall::{Left, recall, repeated, repeated_call};
pub use recover::Recovered;
pub(crate) use recover::recover;

use crate::problem::Problem;
use axum::http::StatusCode;
use toolyard::RecordError;
use toolyard_wire::Format;

/// The key under which a response is known by its records: its format, and what its sender calls it.
pub(crate) fn request_of(format: Format, key: Option<&str>) -> String {
    format!("{}:{}", format.as_str(), key.unwrap_or_default())
}

/// The format of a response that is known under such a key.
fn format_of(request: &str) -> Format {
    request.split_once(':').and_then(|(format, _)| format.parse().ok()).unwrap_or(Format::Neutral)
}

/// What cannot be acknowledged, because it could not be made durable.
pub(crate) fn unrecorded(error: &RecordError) -> Problem {
    let detail = format!("this could not be recorded, so it may be lost: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_recorded", detail).retry_after(1)
}

/// What was recorded cannot be read.
fn unreadable(error: &dyn std::error::Error) -> Problem {
    let detail = format!("what was recorded before cannot be read: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_readable", detail).retry_after(1)
}
