//! TLS in front of every connection, for whoever has no proxy that does it (HT-10).

use crate::tls_error::TlsError;
use rustls::{
    Error, ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
};
use std::{fmt, fs, io, path::Path, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// What connections are encrypted with: TLS 1.2 and 1.3, by rustls with graviola. Needs the feature `https`.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// The certificate in a file of PEM, with those that lead to its authority behind it, and its key in another one
    /// (PKCS #8, PKCS #1 or SEC 1). They are read once.
    ///
    /// # Errors
    /// [`TlsError`], which names the file: it cannot be read, has no certificate or no key, or the key is that of another
    /// certificate. Or this processor is too old.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use toolyard_server::{Tls, TlsError};
    /// let error = Tls::from_files(Path::new("no/cert.pem"), Path::new("no/key.pem")).unwrap_err();
    /// assert!(matches!(error, TlsError::File { .. }));
    /// ```
    pub fn from_files(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = toolyard_egress::tls_provider().map_err(TlsError::Unavailable)?;
        let chain = chain(certificates)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Unavailable(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, private_key(key)?);
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                TlsError::OtherKey { key: key.to_owned(), certificates: certificates.to_owned() }
            }
            Error::InvalidCertificate(error) => {
                wrong(certificates, format!("has no valid certificate: {error}"))
            }
            error => wrong(key, format!("has a key that cannot be used: {error}")),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// Encrypts a connection.
    ///
    /// # Errors
    /// Its other end speaks no TLS, or another one.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn wrong(file: &Path, why: impl Into<String>) -> TlsError {
    TlsError::File { file: file.to_owned(), why: why.into() }
}

/// The content of a file. Only regular ones are opened: a pipe may keep its reader waiting.
fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error: io::Error| wrong(file, format!("cannot be read: {error}"));
    match fs::metadata(file).map_err(unreadable)?.is_file() {
        true => fs::read(file).map_err(unreadable),
        false => Err(wrong(file, "is not a regular file")),
    }
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if all.is_empty() => {
            Err(wrong(file, "has no certificate: -----BEGIN CERTIFICATE----- is missing"))
        }
        Ok(all) => Ok(all),
        Err(error) => Err(wrong(file, format!("is no PEM: {error}"))),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(file)?).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong(file, "has no private key: -----BEGIN PRIVATE KEY----- is missing"),
        error => wrong(file, format!("is no PEM: {error}")),
    })
}
