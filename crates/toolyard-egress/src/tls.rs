//! TLS to an origin: trusts the certificate authorities of the system, and additional ones.
//!
//! Uses rustls with graviola, which needs no C compiler. In exchange it supports only processors of the last ten years,
//! and would panic on others.

use crate::{not_sent::NotSent, origin::Destination, stream::Stream};
use rustls::{
    ClientConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{io, path::Path, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What TLS of this program is done with, for servers too: graviola.
///
/// # Errors
/// It does not support this processor.
///
/// # Examples
/// ```
/// let builder = toolyard_egress::tls_provider().map(rustls::ServerConfig::builder_with_provider);
/// # let _ = builder;
/// ```
pub fn tls_provider() -> Result<Arc<CryptoProvider>, String> {
    match is_known_processor() {
        true => Ok(Arc::new(rustls_graviola::default_provider())),
        false => Err("this processor is too old for TLS (no AES, AVX2 or ADX)".to_owned()),
    }
}

/// What connections are encrypted with.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// TLS that trusts these authorities beside those of the system.
    ///
    /// # Errors
    /// Why it cannot be had: for example a file without certificates, or a processor that graviola does not support.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, String> {
        let provider = tls_provider()?;
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be used: {error}"))?;
        let extra = authorities.map(certificates).transpose()?.unwrap_or_default();
        let verifier = Verifier::new_with_extra_roots(extra, provider)
            .map_err(|error| format!("no certificate authorities can be loaded: {error}"))?;
        let config =
            config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        Ok(Self { connector: Arc::new(config).into() })
    }

    /// Encrypts a connection to this destination.
    ///
    /// # Errors
    /// [`NotSent`]: the other end is not the one that was meant, or does not speak TLS.
    pub(crate) async fn encrypt(&self, to: &Destination, stream: TcpStream) -> Result<Stream, NotSent> {
        let name = ServerName::try_from(to.name().to_owned())
            .map_err(|_| NotSent::unreachable(to, &"no certificate can have its name"))?;
        match self.connector.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(failed(to, &error)),
        }
    }
}

fn failed(to: &Destination, error: &io::Error) -> NotSent {
    let is_about_certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    if is_about_certificate {
        return NotSent::Untrusted { to: to.to_string(), why: error.to_string() };
    }
    NotSent::unreachable(to, error)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |what: String| format!("the authorities in '{}' cannot be used: {what}", file.display());
    let all = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(|error| failed(error.to_string()))?;
    if all.is_empty() { Err(failed("it contains no certificate".to_owned())) } else { Ok(all) }
}

/// Whether graviola supports this processor, checked before it would panic.
#[cfg(target_arch = "x86_64")]
fn is_known_processor() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("aes") && has!("pclmulqdq") && has!("bmi1") && has!("adx") && has!("avx") && has!("avx2")
}

/// Whether graviola supports this processor, checked before it would panic.
#[cfg(target_arch = "aarch64")]
fn is_known_processor() -> bool {
    use std::arch::is_aarch64_feature_detected as has;
    has!("neon") && has!("aes") && has!("pmull") && has!("sha2")
}
