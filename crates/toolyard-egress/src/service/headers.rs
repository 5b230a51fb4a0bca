//! The headers of requests to a service.

use super::failed::{CallFailed, ServiceError};
use crate::origin::Origin;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST,
        TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};
use toolyard_core::Service;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

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

/// The headers of all requests to a service. A header that it has twice is sent twice.
///
/// # Errors
/// One of them is not valid, or is not the service's to set.
pub(super) fn of_service(service: &Service, origin: &Origin) -> Result<HeaderMap, ServiceError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &*service.headers {
        let (name, value) = header(name, value)?;
        headers.append(name, value);
    }
    let defaults = [(ACCEPT, "*/*"), (USER_AGENT, concat!("toolyard/", env!("CARGO_PKG_VERSION")))];
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let host = HeaderValue::try_from(origin.authority())
        .map_err(|_| ServiceError::HeaderValue(HOST.as_str().to_owned()))?;
    headers.insert(HOST, host);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(headers)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ServiceError> {
    let name = HeaderName::try_from(name).map_err(|_| ServiceError::HeaderName(name.to_owned()))?;
    if RESERVED.contains(&name) {
        return Err(ServiceError::HeaderReserved(name.as_str().to_owned()));
    }
    let mut value =
        HeaderValue::try_from(value).map_err(|_| ServiceError::HeaderValue(name.as_str().to_owned()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// The headers of one request.
///
/// # Errors
/// The key cannot be sent.
pub(super) fn of_call(
    all: &HeaderMap,
    key: Option<&str>,
    traceparent: Option<&str>,
) -> Result<HeaderMap, CallFailed> {
    let mut headers = all.clone();
    if let Some(key) = key {
        headers.insert(IDEMPOTENCY_KEY, key_value(key)?);
    }
    // A trace is not worth a call.
    if let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    Ok(headers)
}

/// The key as it is. White space at its ends would be lost on the way, and the key be another one.
fn key_value(key: &str) -> Result<HeaderValue, CallFailed> {
    match HeaderValue::from_str(key) {
        Ok(value) if !key.is_empty() && key.trim_ascii() == key => Ok(value),
        _ => Err(CallFailed::Key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use url::Url;

    fn of(headers: &[(&str, &str)]) -> Result<HeaderMap, ServiceError> {
        let headers: Arc<[_]> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut service = Service::new("http://a.example:8080/x");
        service.headers = headers;
        of_service(&service, &Origin::of(&Url::parse(&service.url).unwrap()).unwrap())
    }

    /// SB-2: what the service sets is sent, but for what is not its own; its values may be secrets.
    #[test]
    fn a_service_sets_its_own_headers() {
        let headers = of(&[("X-Key", "hunter22"), ("user-agent", "mine")]).unwrap();
        assert_eq!(headers["x-key"], "hunter22");
        assert!(headers["x-key"].is_sensitive() && !format!("{headers:?}").contains("hunter22"));
        assert_eq!(headers["user-agent"], "mine");
        assert_eq!(headers["host"], "a.example:8080");
        for name in ["host", "Content-Length", "idempotency-key", "Accept-Encoding", "connection"] {
            assert!(matches!(of(&[(name, "x")]), Err(ServiceError::HeaderReserved(_))), "{name}");
        }
        assert_eq!(of(&[("a b", "hunter22")]), Err(ServiceError::HeaderName("a b".to_owned())));
        assert_eq!(of(&[("a", "hunter\n22")]), Err(ServiceError::HeaderValue("a".to_owned())));
    }

    /// SB-2: a key is sent as it is, or the call is not.
    #[test]
    fn a_key_is_sent_as_it_is() {
        let key =
            |key: &str| of_call(&HeaderMap::new(), Some(key), None).map(|all| all[IDEMPOTENCY_KEY].clone());
        assert_eq!(key("order 1").unwrap(), "order 1");
        assert_eq!(key("bestellung-ü").unwrap().as_bytes(), "bestellung-ü".as_bytes());
        for wrong in ["", "a\nb", "a\0", " a", "a\t"] {
            assert_eq!(key(wrong), Err(CallFailed::Key), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_trace_is_left_out() {
        let of = |trace| of_call(&HeaderMap::new(), None, Some(trace)).unwrap();
        assert_eq!(of("00-1-2-01")["traceparent"], "00-1-2-01");
        assert!(of("a\nb").is_empty());
    }
}
