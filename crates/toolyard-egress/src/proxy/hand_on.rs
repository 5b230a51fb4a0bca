//! Hands a request on to an origin, and its response back.

use super::{covered::Covered, hop, refusal::Refusal, upstream::Upstream};
use crate::{
    address::Addresses,
    egress::Egress,
    exchange::{Arriving, exchange},
    origin::Origin,
};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, HOST},
};
use hyper::body::{Body as _, Incoming};

/// A response that is handed back.
pub(super) type HandedBack = Response<Covered<Arriving<Incoming>>>;

/// Where a request is handed on to.
pub(super) struct To<'a> {
    pub(super) origin: &'a Origin,
    pub(super) may: Addresses,
    pub(super) path: Uri,
    /// What it gets there that the program does not see.
    pub(super) upstream: Option<&'a Upstream>,
}

/// Hands a request on.
///
/// # Errors
/// [`Refusal`]: the origin may not be dialled, cannot be reached, has not answered, or not in a way that can be handed
/// back.
///
/// # Cancel safety
/// Dropping the future ends the connection to the origin; the request may have been sent.
pub(super) async fn hand_on(
    egress: &Egress,
    request: Request<Incoming>,
    to: To<'_>,
) -> Result<HandedBack, Refusal> {
    let (mut head, body) = request.into_parts();
    hop::strip(&mut head.headers);
    hop::measure_request(&mut head.headers, body.size_hint().exact());
    address(&mut head.headers, to.origin)?;
    if let Some(upstream) = to.upstream {
        give_secrets(&mut head.headers, upstream);
    }
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = to.path;
    *request.headers_mut() = head.headers;
    let stream = egress.connect(to.origin, to.may).await?;
    let response = exchange(stream, request)
        .await
        .map_err(|failed| Refusal::failed(format!("{} has not answered: {}", to.origin, failed.why)))?;
    hand_back(&head.method, response, to.origin, to.upstream)
}

/// Sets what depends on where a request goes.
fn address(headers: &mut HeaderMap, origin: &Origin) -> Result<(), Refusal> {
    let host = HeaderValue::try_from(origin.authority())
        .map_err(|_| Refusal::invalid("the host is none that a header can name"))?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(())
}

/// Puts the secrets in place of what the program has sent: it has none, and what it has is a stand-in.
fn give_secrets(headers: &mut HeaderMap, upstream: &Upstream) {
    headers.remove(AUTHORIZATION);
    for name in upstream.secrets.keys() {
        headers.remove(name);
    }
    for (name, value) in &*upstream.secrets {
        headers.append(name, value.clone());
    }
    // Secrets can be covered only in what can be read.
    if upstream.mask.is_some() {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
}

fn hand_back(
    of: &http::Method,
    response: Response<Arriving<Incoming>>,
    origin: &Origin,
    upstream: Option<&Upstream>,
) -> Result<HandedBack, Refusal> {
    let (mut head, body) = response.into_parts();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Refusal::failed(format!(
            "{origin} has switched to another protocol, which nobody asked for"
        )));
    }
    let mask = upstream.and_then(|upstream| upstream.mask.clone());
    if mask.is_some() && is_encoded(&head.headers) {
        return Err(Refusal::failed(format!("{origin} has encoded its answer, which was not asked for")));
    }
    hop::strip(&mut head.headers);
    let body = Covered::new(body, mask.clone());
    hop::measure_response(&mut head.headers, of, head.status, body.size_hint().exact());
    if let Some(mask) = mask {
        mask.headers(&mut head.headers);
    }
    // Without what was said beside status and headers: a reason is free text.
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
    Ok(response)
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}
