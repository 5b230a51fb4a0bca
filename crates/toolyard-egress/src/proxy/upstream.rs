//! Origins that the proxy speaks to itself, with a secret that the program does not see.

use super::{mask::Mask, quota::Quota};
use crate::{
    address::Addresses,
    egress::Egress,
    origin::{Origin, OriginError},
    secret_header::secret_headers,
    setup_error::SetupError,
};
use http::HeaderMap;
use std::{fmt, sync::Arc};
use url::Url;

/// An origin that programs reach under a name, by plain HTTP and without its secret (SB-10). Cheap to clone.
///
/// All its headers are taken for secrets and covered where they come back, but for values of less than 6 bytes, which
/// occur everywhere.
///
/// # Examples
/// ```
/// use toolyard_egress::{Addresses, Egress, Upstream};
/// let models = Upstream::new(
///     "models",
///     "http://models.example",
///     Addresses::Public,
///     [("x-api-key", "hunter22")],
///     &Egress::new(),
/// )?;
/// assert!(!format!("{models:?}").contains("hunter22"));
/// # Ok::<(), toolyard_egress::SetupError>(())
/// ```
#[derive(Clone)]
pub struct Upstream {
    pub(super) name: Arc<str>,
    pub(super) origin: Origin,
    pub(super) may: Addresses,
    pub(super) secrets: Arc<HeaderMap>,
    pub(super) mask: Option<Arc<Mask>>,
    pub(super) quota: Quota,
}

impl Upstream {
    /// An upstream of this name at an origin, such as `https://api.example.com`, and the headers that its requests get,
    /// in place of the program's own ones of these names.
    ///
    /// # Errors
    /// [`SetupError`]: the name is none that a path can begin with, the URL is more than an origin or none that can be
    /// spoken to, or a header is not valid.
    pub fn new<'a>(
        name: &str,
        url: &str,
        may: Addresses,
        secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
        egress: &Egress,
    ) -> Result<Self, SetupError> {
        if !is_name(name) {
            return Err(SetupError::Name(name.to_owned()));
        }
        let origin = origin_of(url)?;
        egress.check(&origin)?;
        let secrets = Arc::new(secret_headers(secrets)?);
        let mask = Mask::new(&secrets).map(Arc::new);
        Ok(Self { name: name.into(), origin, may, secrets, mask, quota: Quota::default() })
    }

    /// Counts its requests here, and bounds them. Without this they are counted, and not bounded.
    #[must_use]
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }
}

/// Whether a segment of a path can be this name, in one spelling alone.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(is_plain) && !matches!(name, "." | "..")
}

fn origin_of(url: &str) -> Result<Origin, OriginError> {
    let url = Url::parse(url)?;
    let origin = Origin::of(&url)?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if is_bare { Ok(origin) } else { Err(OriginError::Path) }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Upstream");
        debug.field("name", &self.name).field("origin", &self.origin).field("addresses", &self.may);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, url: &str, header: (&str, &str)) -> Result<Upstream, SetupError> {
        Upstream::new(name, url, Addresses::Public, [header], &Egress::new())
    }

    /// SB-10: an upstream is one origin, under a name with one spelling.
    #[test]
    fn an_upstream_is_one_origin_under_one_name() {
        let header = ("authorization", "Bearer hunter22");
        let upstream = made("a-1_b.c", "http://a.example:81", header).unwrap();
        assert!(upstream.mask.is_some() && !format!("{upstream:?}").contains("hunter22"));
        for name in ["", ".", "..", "a/b", "a?", "a b", "ä", "a%2f"] {
            assert!(matches!(made(name, "http://a.example", header), Err(SetupError::Name(_))), "{name}");
        }
        for url in ["http://a.example/v1", "http://a.example/?x", "http://a.example/#x"] {
            assert_eq!(made("a", url, header).unwrap_err(), SetupError::Origin(OriginError::Path));
        }
        let error = made("a", "http://a.example", ("host", "b.example")).unwrap_err();
        assert_eq!(error, SetupError::HeaderReserved("host".to_owned()));
    }
}
