//! The exact sentences that the model reads (V5). They are part of the interface: prompts and tests match them.

use serde_json::Value;
use std::{borrow::Cow, fmt, time::Duration};

/// The maximum number of names listed after "Available:".
pub const AVAILABLE_MAX: usize = 50;

/// The maximum number of characters of a name in a message. No tool has a longer one.
const NAME_MAX: usize = 128;

/// The message of a call that a person refused.
pub const USER_DENIED: &str = "User denied this operation.";

/// `User denied this operation. Reason: too late in the day`; without a reason, [`USER_DENIED`].
///
/// # Examples
/// ```
/// use toolyard_core::wording::user_denied;
/// assert_eq!(user_denied(None), "User denied this operation.");
/// assert_eq!(user_denied(Some("too late")), "User denied this operation. Reason: too late");
/// ```
pub fn user_denied(reason: Option<&str>) -> String {
    match reason {
        None => USER_DENIED.to_owned(),
        Some(reason) => format!("{USER_DENIED} Reason: {reason}"),
    }
}

/// The maximum number of bytes of changed arguments that a result repeats.
const CHANGED_BYTES_MAX: usize = 16 * 1024;

/// `The arguments of this call were changed by the person who approved it: {"path":"notes.md"}`, which stands before
/// the result of such a call (SM-5). Over 16 KiB, the arguments are cut, and the end says how much is missing.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::wording::arguments_changed;
/// assert_eq!(
///     arguments_changed(&json!({"path": "notes.md"})),
///     r#"The arguments of this call were changed by the person who approved it: {"path":"notes.md"}"#
/// );
/// ```
pub fn arguments_changed(args: &Value) -> String {
    let args = args.to_string();
    let end = args.floor_char_boundary(CHANGED_BYTES_MAX);
    let more = match args.len() - end {
        0 => String::new(),
        more => format!("… and {more} more bytes"),
    };
    format!("The arguments of this call were changed by the person who approved it: {}{more}", &args[..end])
}

/// The message of a call whose question ended because its arguments were changed to what may not run, again and again.
pub const EDITS_REFUSED: &str = "User changed the arguments of this operation to what may not run.";

/// The message of a call that needs approval when nobody can be asked for it (PO-3).
pub const NOBODY_TO_ASK: &str = "This operation needs approval and nobody can be asked.";

/// The message of a call that needs approval and is too long to be shown to the person who would be asked (PO-4).
pub const TOO_LONG_TO_ASK: &str = "This operation needs approval and is too long to be shown whole.";

/// The message of a panic or an unclassified error, whose own text may hold secrets or paths.
pub const INTERNAL_FAILURE: &str = "The tool failed unexpectedly.";

/// What to do about [`redacted_argument`].
pub const REDACTED_ARGUMENT_ADVICE: &str = "The secret itself is not known to you and cannot be sent. Leave out the part with the mark; to change a file that contains it, change only other parts of the file.";

/// `The arguments contain '[redacted]', which stands for a secret`
pub fn redacted_argument(mark: &str) -> String {
    format!(
        "The arguments contain '{mark}', which stands for a secret that was taken out of an earlier result"
    )
}

/// `Tool 'X' not found. Available: [a, b, c]`, with sorted names, at most 50, then `… and N more`.
///
/// # Examples
/// ```
/// use toolyard_core::wording::tool_not_found;
/// assert_eq!(tool_not_found("x", vec!["b", "a"]), "Tool 'x' not found. Available: [a, b]");
/// ```
pub fn tool_not_found(name: &str, mut available: Vec<&str>) -> String {
    let name = cut_name(name);
    let more = available.len().saturating_sub(AVAILABLE_MAX);
    if more > 0 {
        // Only what is shown is sorted: there may be thousands, and a model may call many that do not exist.
        available.select_nth_unstable(AVAILABLE_MAX);
        available.truncate(AVAILABLE_MAX);
    }
    available.sort_unstable();
    let names = available.join(", ");
    match more {
        0 => format!("Tool '{name}' not found. Available: [{names}]"),
        more => format!("Tool '{name}' not found. Available: [{names}, … and {more} more]"),
    }
}

/// A name as messages show it: one that is longer than any tool's is cut.
fn cut_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    }
}

/// `Invalid JSON: <why> at position N`, where the position counts bytes from 0.
pub fn invalid_json(why: impl fmt::Display, position: usize) -> String {
    format!("Invalid JSON: {why} at position {position}")
}

/// `Permission denied: tool 'X' is disabled by policy`
pub fn disabled_by_policy(name: &str) -> String {
    format!("Permission denied: tool '{name}' is disabled by policy")
}

/// `Tool exceeded 30s wall time limit`
pub fn wall_time_limit(limit: Duration) -> String {
    format!("Tool exceeded {} wall time limit", Span(limit))
}

/// `Path '../x' escapes workspace boundary`
pub fn path_escapes(path: &str) -> String {
    format!("Path '{path}' escapes workspace boundary")
}

/// A duration as written in configuration: `30s`, `1.5s`, `250ms`.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::wording::Span;
/// assert_eq!(Span(Duration::from_secs(30)).to_string(), "30s");
/// assert_eq!(Span(Duration::from_millis(1500)).to_string(), "1.5s");
/// assert_eq!(Span(Duration::from_nanos(31_351_263_088)).to_string(), "31.351s");
/// assert_eq!(Span(Duration::from_nanos(999_999_600)).to_string(), "1s");
/// assert_eq!(Span(Duration::from_millis(250)).to_string(), "250ms");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = rounded(self.0.as_nanos());
        let (unit, name) = match nanos {
            SECOND.. => (SECOND, "s"),
            0 | MILLI.. => (MILLI, "ms"),
            _ => (MICRO, "µs"),
        };
        // Exact enough: a duration of 2^53 ns or more is rounded by more than that.
        #[expect(clippy::cast_precision_loss, reason = "more than 53 bits are not shown")]
        let number = nanos as f64 / unit as f64;
        write!(f, "{number}{name}")
    }
}

const MICRO: u128 = 1_000;
const MILLI: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000;

/// To three decimals of the unit in which it is shown.
fn rounded(nanos: u128) -> u128 {
    let to = match nanos {
        SECOND.. => MILLI,
        MILLI.. => MICRO,
        _ => 1,
    };
    (nanos + to / 2) / to * to
}
