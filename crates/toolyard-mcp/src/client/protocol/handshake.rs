//! The handshake with a server, the newer one (`server/discover`) or the older (`initialize`), and why it fails.

use super::describe::causes;
use rmcp::{
    model::{ErrorCode, ProtocolVersion},
    service::{ClientInitializeError as RequestError, ClientLifecycleMode},
};
use std::io;

/// How a server is greeted, named as in rmcp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// First in the newer way, then in the older, also if there is no answer after a short time.
    Auto,
    /// Only in the older way.
    Initialize,
    /// Only in the newer way, with all the time there is.
    Discover,
}

impl Handshake {
    /// The mode of rmcp for it.
    pub(crate) fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Auto => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => ClientLifecycleMode::Discover { preferred_versions },
        }
    }
}

/// Why a start failed.
#[derive(Debug)]
pub(crate) struct StartFailure {
    pub(crate) why: String,
    /// The connection was lost, and there may be a better reason than that.
    pub(crate) is_lost: bool,
    /// How to greet it instead, if it may know another way.
    pub(crate) instead: Option<Handshake>,
}

impl StartFailure {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_lost: false, instead: None }
    }

    /// Why a greeting failed.
    pub(crate) fn greeting(handshake: Handshake, error: &RequestError) -> Self {
        let older = (handshake == Handshake::Auto).then_some(Handshake::Initialize);
        match error {
            // The newer way does not work; the result of the older one counts.
            RequestError::LegacyFallbackFailed { fallback, .. } => {
                let instead = refuses_initialize(fallback).then_some(Handshake::Discover);
                Self { instead, ..Self::greeting(Handshake::Initialize, fallback) }
            }
            RequestError::ConnectionClosed(_) | RequestError::TransportError { .. } => {
                Self { why: describe_loss(error), is_lost: true, instead: older }
            }
            RequestError::JsonRpcError(error) => {
                Self::because(format!("it refused the handshake: {}", error.message))
            }
            // The texts of both contain the whole answer.
            RequestError::ExpectedInitResult(_) | RequestError::ExpectedInitResponse(_) => {
                Self { instead: older, ..Self::because("its answer to the handshake is not valid") }
            }
            error => Self { instead: older, ..Self::because(format!("the handshake failed: {error}")) },
        }
    }
}

/// Whether a server that was greeted in the older way says that it does not know it.
fn refuses_initialize(error: &RequestError) -> bool {
    let RequestError::JsonRpcError(error) = error else { return false };
    [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION].contains(&error.code)
}

fn describe_loss(error: &RequestError) -> String {
    match error {
        RequestError::TransportError { error, .. } if error.error.is::<io::Error>() => {
            "it closed its input".to_owned()
        }
        RequestError::TransportError { error, .. } => causes(error.error.as_ref()),
        error => format!("the handshake failed: {error}"),
    }
}
