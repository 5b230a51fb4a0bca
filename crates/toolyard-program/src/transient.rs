//! The one exit code with a meaning of its own: a failure that may pass.

use crate::output::Kept;
use serde::Deserialize;
use std::time::Duration;
use toolyard_core::ToolError;

/// The exit code for a failure that may pass: `EX_TEMPFAIL` of `sysexits.h`.
pub const TRY_AGAIN: i32 = 75;

/// The most characters of a program's own message.
const MESSAGE_CHARS_MAX: usize = 2000;

#[derive(Deserialize)]
struct Document {
    error: Told,
}

/// What the program tells of a failure that may pass.
#[derive(Deserialize)]
struct Told {
    code: Option<String>,
    message: String,
    #[serde(default)]
    no_side_effect: bool,
    retry_after_ms: Option<u64>,
}

/// The error of a program that exited with [`TRY_AGAIN`], if its output says so too: another program's 75 may mean
/// anything.
pub(crate) fn read(output: &Kept) -> Option<ToolError> {
    let told = serde_json::from_str::<Document>(&output.text).ok().filter(|_| output.is_whole)?.error;
    let message: String = told.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let error = ToolError::transient(match told.code.as_deref() {
        Some(code) if !code.is_empty() => format!("{code}: {message}"),
        _ => message,
    });
    let error = if told.no_side_effect { error.no_side_effect() } else { error };
    Some(match told.retry_after_ms {
        Some(ms) => error.retry_after(Duration::from_millis(ms)),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-2: all that the program tells counts.
    #[test]
    fn what_it_tells_counts() {
        let text =
            r#"{"error":{"code":"busy","message":"locked","no_side_effect":true,"retry_after_ms":250}}"#;
        let error = read(&Kept::whole(text)).unwrap();
        assert_eq!(error.message(), "busy: locked");
        assert!(error.has_no_side_effect());
        assert_eq!(error.retry_after_hint(), Some(Duration::from_millis(250)));
    }

    /// SB-2: code, side effect and time are the program's choice; the message is not.
    #[test]
    fn only_the_message_is_needed() {
        let error = read(&Kept::whole(r#"{"error":{"message":"locked"}}"#)).unwrap();
        assert_eq!(
            (error.message(), error.has_no_side_effect(), error.retry_after_hint()),
            ("locked", false, None)
        );
        for text in ["", "locked", r#"{"error":{}}"#, r#"{"error":"locked"}"#] {
            assert!(read(&Kept::whole(text)).is_none(), "{text}");
        }
    }
}
