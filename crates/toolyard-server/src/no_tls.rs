//! A server that was built without TLS.

use crate::tls_error::TlsError;
use std::{convert::Infallible, io, path::Path};
use tokio::net::TcpStream;

/// What connections are encrypted with: nothing, so there is none of these.
#[derive(Debug, Clone)]
pub struct Tls(Infallible);

impl Tls {
    /// There is no TLS without the feature `https`.
    ///
    /// # Errors
    /// [`TlsError::Unavailable`], always.
    pub fn from_files(_certificates: &Path, _key: &Path) -> Result<Self, TlsError> {
        Err(TlsError::Unavailable("this program was built without the feature https".to_owned()))
    }

    pub(crate) async fn accept(&self, _stream: TcpStream) -> io::Result<TcpStream> {
        match self.0 {}
    }
}
