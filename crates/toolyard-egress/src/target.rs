//! Where requests go: an origin that may be dialled, and what is asked of it.

use crate::{
    address::Addresses,
    egress::Egress,
    exchange::{Arriving, NoResponse, exchange},
    not_sent::NotSent,
    origin::Origin,
    service::CallFailed,
    setup_error::SetupError,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri,
    header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::Full;
use hyper::body::Bytes;
use std::fmt;
use url::Url;

/// Where documents of JSON are posted to.
#[derive(Clone)]
pub(crate) struct Target {
    egress: Egress,
    origin: Origin,
    may: Addresses,
    /// The path and the query.
    path: Uri,
}

impl Target {
    /// A target that can be spoken to. The first with an `https:` URL reads the certificate authorities.
    ///
    /// # Errors
    /// [`SetupError`]: its URL is not valid, its address may not be dialled, or it needs TLS, which cannot be had.
    pub(crate) fn new(url: &str, may: Addresses, egress: &Egress) -> Result<Self, SetupError> {
        let url = Url::parse(url).map_err(|error| SetupError::Origin(error.into()))?;
        let origin = Origin::of(&url)?;
        egress.check(&origin)?;
        if let Some(address) = origin.at.address() {
            may.check(address).map_err(|why| NotSent::refused(&origin.at, why))?;
        }
        Ok(Self { egress: egress.clone(), origin, may, path: path_of(&url)? })
    }

    /// The headers that every request has, with these, which go before the defaults.
    pub(crate) fn headers(&self, mut own: HeaderMap) -> Result<HeaderMap, SetupError> {
        let defaults: [(HeaderName, &str); 2] =
            [(ACCEPT, "*/*"), (USER_AGENT, concat!("toolyard/", env!("CARGO_PKG_VERSION")))];
        for (name, value) in defaults {
            own.entry(name).or_insert(HeaderValue::from_static(value));
        }
        let host = HeaderValue::try_from(self.origin.authority())
            .map_err(|_| SetupError::HeaderValue(HOST.as_str().to_owned()))?;
        own.insert(HOST, host);
        own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        own.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(own)
    }

    /// Posts a document, once.
    ///
    /// # Errors
    /// [`CallFailed`], which knows whether anything may have happened there.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection; the document may have arrived.
    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Arriving<Full<Bytes>>>, CallFailed> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        let stream = self.egress.connect(&self.origin, self.may).await?;
        exchange(stream, request).await.map_err(|NoResponse { is_sent, why }| match is_sent {
            true => self.lost(why),
            false => NotSent::unreachable(&self.origin.at, &why).into(),
        })
    }

    pub(crate) fn lost(&self, why: String) -> CallFailed {
        CallFailed::Lost { from: self.origin.to_string(), why }
    }
}

/// What a request asks an origin for.
fn path_of(url: &Url) -> Result<Uri, SetupError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    path.parse().map_err(|_| SetupError::Path)
}

/// Without the path and the query, which may hold a secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Target");
        debug.field("origin", &self.origin).field("addresses", &self.may).finish_non_exhaustive()
    }
}
