//! When to try again, as a remote asks (RT-3).

use std::time::{Duration, SystemTime};

/// The longest hint: longer ones are cut to this. No call waits that long (RT-3), so it only keeps the time reported to
/// callers reasonable.
pub const HINT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The wait that the value of a `Retry-After` header asks for: whole seconds, or an HTTP date.
///
/// A date in the past means no wait. `None` for anything else, such as `-1`, `NaN` or an empty value.
///
/// # Examples
/// ```
/// use std::time::{Duration, SystemTime};
/// use toolyard_core::resilience::retry_after;
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
/// assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
/// assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", now), Some(Duration::from_secs(10)));
/// assert_eq!(retry_after("-1", now), None);
/// ```
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Some(seconds) = parse_digits(value) {
        return Some(Duration::from_secs(seconds).min(HINT_MAX));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(now).unwrap_or(Duration::ZERO).min(HINT_MAX))
}

/// The wait that a text of whole milliseconds asks for, as in a `retry-after-ms` header.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::resilience::retry_after_ms;
/// assert_eq!(retry_after_ms("1500"), Some(Duration::from_millis(1500)));
/// assert_eq!(retry_after_ms("1.5s"), None);
/// ```
pub fn retry_after_ms(value: &str) -> Option<Duration> {
    parse_digits(value.trim()).map(|millis| Duration::from_millis(millis).min(HINT_MAX))
}

/// Parses a text of digits only. A number too large for `u64` becomes `u64::MAX`.
fn parse_digits(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn check(value: &str, seconds: Option<u64>) {
        assert_eq!(retry_after(value, now()), seconds.map(Duration::from_secs), "'{value}'");
    }

    /// RT-3: whole seconds, and the three spellings of an HTTP date.
    #[test]
    fn a_header_is_seconds_or_a_date() {
        check("0", Some(0));
        check(" 120 ", Some(120));
        check("Sun, 06 Nov 1994 08:50:07 GMT", Some(30));
        check("Sunday, 06-Nov-94 08:50:07 GMT", Some(30));
        check("Sun Nov  6 08:50:07 1994", Some(30));
    }

    /// RT-3: a date in the past means no wait.
    #[test]
    fn a_date_in_the_past_is_no_wait() {
        check("Sun, 06 Nov 1994 08:49:36 GMT", Some(0));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
    }

    /// RT-3: a wait of more than a day is cut to a day.
    #[test]
    fn an_absurd_wait_is_cut() {
        let day = HINT_MAX.as_secs();
        check("86400", Some(day));
        check("86401", Some(day));
        check("18446744073709551615", Some(day));
        check("99999999999999999999999999", Some(day));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(day));
        assert_eq!(retry_after_ms("99999999999999999999999999"), Some(HINT_MAX));
    }

    /// RT-3: anything that is not a wait is not a hint.
    #[test]
    fn anything_else_is_no_hint() {
        for value in ["", " ", "-1", "+1", "NaN", "inf", "1.5", "1e3", "0x10", "12 s", "soon", "٣", "\u{0}"]
        {
            check(value, None);
            assert_eq!(retry_after_ms(value), None, "'{value}'");
        }
        check("Sun, 32 Nov 1994 08:49:37 GMT", None);
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:50:07 GMT"), None);
    }

    /// RT-3: milliseconds are read as milliseconds.
    #[test]
    fn milliseconds_have_a_reader_of_their_own() {
        assert_eq!(retry_after_ms("45000"), Some(Duration::from_secs(45)));
        assert_eq!(retry_after_ms(" 1 "), Some(Duration::from_millis(1)));
    }
}
