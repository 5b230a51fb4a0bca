//! The headers of requests to a service.

use super::failed::CallFailed;
use crate::{
    secret_header::{IDEMPOTENCY_KEY, secret_headers},
    setup_error::SetupError,
    target::Target,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use toolyard_core::Service;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The headers of all requests to a service.
///
/// # Errors
/// One of them is not valid, or is not the service's to set.
pub(super) fn of_service(service: &Service, target: &Target) -> Result<HeaderMap, SetupError> {
    let own = service.headers.iter().map(|(name, value)| (&**name, &**value));
    target.headers(secret_headers(own)?)
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
    use crate::{address::Addresses, egress::Egress};

    /// SB-2: what a service sets goes with what the contract sets.
    #[test]
    fn a_service_sets_its_own_headers() {
        let mut service = Service::new("http://a.example:8080/x");
        service.headers = [("X-Key", "hunter22"), ("user-agent", "mine")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let target = Target::new(&service.url, Addresses::Public, &Egress::new()).unwrap();
        let headers = of_service(&service, &target).unwrap();
        for (name, value) in [("x-key", "hunter22"), ("user-agent", "mine"), ("host", "a.example:8080")] {
            assert_eq!(headers[name], value);
        }
        assert_eq!(headers["content-type"], "application/json");
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
