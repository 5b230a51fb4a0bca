//! Headers that are configured, and may hold secrets.

use crate::setup_error::SetupError;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE,
        TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

/// The contract's own (SB-2).
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What the contract and the connection set themselves.
const RESERVED: [HeaderName; 12] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    HOST,
    IDEMPOTENCY_KEY,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The most headers that can be configured.
const COUNT_MAX: usize = 32;

/// Longer than any key or token.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Headers as they are configured. One that is there twice is sent twice.
///
/// # Errors
/// There are too many, or one is not valid or not the configuration's to set.
pub(crate) fn secret_headers<'a>(
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        if headers.len() == COUNT_MAX {
            return Err(SetupError::HeaderCount { most: COUNT_MAX });
        }
        let (name, value) = secret_header(name, value)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn secret_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), SetupError> {
    let name = HeaderName::try_from(name).map_err(|_| SetupError::HeaderName(name.to_owned()))?;
    let invalid = || SetupError::HeaderValue(name.as_str().to_owned());
    if RESERVED.contains(&name) {
        return Err(SetupError::HeaderReserved(name.as_str().to_owned()));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(invalid());
    }
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-2, SB-10: what is configured is sent, but for what is not the configuration's; it may be secret.
    #[test]
    fn what_is_configured_is_sent() {
        let headers = secret_headers([("X-Key", "hunter22"), ("x-key", "other")]).unwrap();
        assert!(headers.get_all("x-key").iter().eq(["hunter22", "other"]));
        assert!(headers["x-key"].is_sensitive() && !format!("{headers:?}").contains("hunter22"));
        let of = |name, value| secret_headers([(name, value)]).unwrap_err();
        for name in ["host", "Content-Length", "idempotency-key", "Accept-Encoding", "connection"] {
            assert_eq!(of(name, "x"), SetupError::HeaderReserved(name.to_ascii_lowercase()));
        }
        assert_eq!(of("a b", "hunter22"), SetupError::HeaderName("a b".to_owned()));
        assert_eq!(of("a", "hunter\n22"), SetupError::HeaderValue("a".to_owned()));
        assert_eq!(of("a", &"x".repeat(20_000)), SetupError::HeaderValue("a".to_owned()));
        let many = secret_headers([("a", "x"); 33]).unwrap_err();
        assert_eq!(many, SetupError::HeaderCount { most: 32 });
    }
}
