//! Addresses that are told of something.

use crate::{
    address::Addresses, egress::Egress, service::CallFailed, setup_error::SetupError, target::Target,
};
use http::HeaderMap;
use hyper::body::Bytes;

/// An address that documents of JSON are posted to: each over a connection of its own, once, without redirects, a proxy
/// of the environment or compression (SB-10).
///
/// # Examples
/// ```
/// # use toolyard_egress::{Addresses, Egress, Webhook};
/// async fn tell(egress: &Egress) -> Result<u16, Box<dyn std::error::Error>> {
///     let hook = Webhook::new("http://hooks.example/tools", Addresses::Public, egress)?;
///     Ok(hook.post(&Default::default(), r#"{"type": "greeting"}"#.to_owned()).await?)
/// }
/// # let _ = tell;
/// ```
#[derive(Debug, Clone)]
pub struct Webhook {
    target: Target,
    headers: HeaderMap,
}

impl Webhook {
    /// An address that can be spoken to. The first with an `https:` URL reads the certificate authorities.
    ///
    /// # Errors
    /// [`SetupError`]: the URL is not valid, its address may not be dialled, or it needs TLS, which cannot be had.
    pub fn new(url: &str, may: Addresses, egress: &Egress) -> Result<Self, SetupError> {
        let target = Target::new(url, may, egress)?;
        let headers = target.headers(HeaderMap::new())?;
        Ok(Self { target, headers })
    }

    /// Posts a document with these headers, and returns the status of the answer. Its body is not read.
    ///
    /// # Errors
    /// [`CallFailed`], which knows whether it may have arrived.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection; the document may have arrived.
    pub async fn post(&self, headers: &HeaderMap, document: String) -> Result<u16, CallFailed> {
        let mut all = self.headers.clone();
        all.extend(headers.clone());
        let answered = self.target.post(all, Bytes::from(document)).await?;
        Ok(answered.status().as_u16())
    }
}
