//! The headers of a message that is handed on.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{
        CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

/// What is about one connection, and not about the message.
const OF_A_CONNECTION: [HeaderName; 11] = [
    CONNECTION,
    EXPECT,
    HOST,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what is about the connection, with what its header `Connection` names. Must come before anything is added,
/// or that could be named there.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named.iter().chain(&OF_A_CONNECTION) {
        headers.remove(name);
    }
}

/// Sets the length of a request to that of its body: two that differ would be read as two requests, or as none.
pub(super) fn measure_request(headers: &mut HeaderMap, body: Option<u64>) {
    // Without a body, a length of zero is only said where it was.
    let was_said = headers.remove(CONTENT_LENGTH).is_some();
    if let Some(length) = body.filter(|length| *length > 0 || was_said) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

/// Sets the length of a response to that of its body, unless it is about a body that does not come.
pub(super) fn measure_response(headers: &mut HeaderMap, of: &Method, status: StatusCode, body: Option<u64>) {
    if *of == Method::HEAD || status == StatusCode::NOT_MODIFIED {
        return;
    }
    headers.remove(CONTENT_LENGTH);
    if let Some(length) = body.filter(|_| status != StatusCode::NO_CONTENT) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            })
    }

    /// SB-10: what is about a connection stays on it, also what the message says is.
    #[test]
    fn what_is_about_a_connection_stays_on_it() {
        let mut headers = map(&[
            ("connection", "close, X-Mine"),
            ("connection", "x-other,, b@d"),
            ("x-mine", "1"),
            ("x-other", "1"),
            ("proxy-authorization", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("host", "a"),
            ("accept", "*/*"),
        ]);
        strip(&mut headers);
        assert_eq!(headers, map(&[("accept", "*/*")]));
    }

    /// SB-10: a message has one length, that of its body.
    #[test]
    fn a_message_has_one_length() {
        let request = |said: &[(&'static str, &'static str)], body| {
            let mut headers = map(said);
            measure_request(&mut headers, body);
            headers.get(CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(request(&[("content-length", "7")], None), None);
        assert_eq!(request(&[("content-length", "7")], Some(5)).unwrap(), "5");
        assert_eq!(
            (request(&[("content-length", "0")], Some(0)).unwrap(), request(&[], Some(0))),
            ("0".into(), None)
        );
        let response = |of: Method, status, body| {
            let mut headers = map(&[("content-length", "7")]);
            measure_response(&mut headers, &of, status, body);
            headers.get(CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(response(Method::GET, StatusCode::OK, None), None);
        assert_eq!(response(Method::GET, StatusCode::OK, Some(5)).unwrap(), "5");
        assert_eq!(response(Method::HEAD, StatusCode::OK, Some(0)).unwrap(), "7");
        assert_eq!(response(Method::GET, StatusCode::NO_CONTENT, Some(0)), None);
    }
}
