//! Why connections cannot be encrypted.

use std::path::PathBuf;

/// Why connections cannot be encrypted as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no TLS.
    #[error("TLS cannot be had: {0}")]
    Unavailable(String),
    /// A file has not what it should.
    #[error("'{}' {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The key is that of another certificate.
    #[error("the key in '{}' is not that of the first certificate in '{}'", key.display(), certificates.display())]
    OtherKey {
        /// The file with the key.
        key: PathBuf,
        /// The file with the certificates.
        certificates: PathBuf,
    },
}
