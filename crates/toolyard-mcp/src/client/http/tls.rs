//! TLS to a server: trusts the certificate authorities of the system, and additional ones.
//!
//! Uses rustls with graviola, which needs no C compiler. In exchange it supports only processors of the last ten years,
//! and would panic on others.

use reqwest::Url;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{path::Path, sync::Arc};

/// The TLS configuration for a server at this URL.
///
/// # Errors
/// Why TLS cannot be used: for example a file without certificates, or a processor that graviola does not support.
pub(crate) fn config(url: &Url, ca: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls_graviola::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    if url.scheme() != "https" {
        // TLS is not used, so no authority is trusted.
        return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    if !is_known_processor() {
        return Err("TLS cannot be used: this processor is too old for it (no AES, AVX2 or ADX)".to_owned());
    }
    let extra = ca.map(certificates).transpose()?.unwrap_or_default();
    let verifier = Verifier::new_with_extra_roots(extra, provider)
        .map_err(|error| format!("no certificate authorities can be loaded: {error}"))?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |what: String| format!("ca '{}': {what}", file.display());
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
