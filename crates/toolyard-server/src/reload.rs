//! Reading the configuration again while it is served.

use crate::server::Server;
use async_trait::async_trait;
use serde::Serialize;
use utoipa::ToSchema;

/// Reads a server's configuration again, and puts it in force: all that can be changed while it is served, or nothing.
///
/// # Examples
/// ```
/// use toolyard_server::{ReloadError, Reloaded, Reload, Server, Token};
/// struct Tokens(fn() -> Vec<Token>);
/// # use async_trait::async_trait;
/// #[async_trait]
/// impl Reload for Tokens {
///     async fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError> {
///         server.set_tokens((self.0)())?;
///         Ok(Reloaded { changed: vec!["tokens".into()], needs_restart: Vec::new() })
///     }
/// }
/// ```
#[async_trait]
pub trait Reload: Send + Sync {
    /// Reads it, and changes what has changed. There is one at a time, and it is not cut off.
    ///
    /// # Errors
    /// [`ReloadError`]: nothing has changed.
    async fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError>;
}

/// What came of reading a configuration again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct Reloaded {
    /// The settings that were changed.
    pub changed: Vec<String>,
    /// Those that differ from what is in force until the server is started again.
    pub needs_restart: Vec<String>,
}

/// Why a configuration was not read again. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// It was started with none.
    #[error("this server was not started with a configuration that could be read again")]
    NotGiven,
    /// It is invalid.
    #[error("{}", texts(.0))]
    Invalid(Vec<ConfigFault>),
    /// The engine is shutting down.
    #[error("the server is shutting down")]
    Stopping,
}

/// An error in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConfigFault {
    /// The line, from 1; none if it is about all of it.
    pub line: Option<usize>,
    /// What is wrong, where, and what to do.
    pub detail: String,
}

fn texts(faults: &[ConfigFault]) -> String {
    faults.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("\n")
}

impl From<crate::ServeError> for ReloadError {
    fn from(error: crate::ServeError) -> Self {
        Self::Invalid(vec![ConfigFault { line: None, detail: error.to_string() }])
    }
}
