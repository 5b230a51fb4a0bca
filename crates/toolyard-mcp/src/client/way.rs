//! In which way a server is greeted, and what a greeting fails of.

use super::told::causes;
use rmcp::{
    model::{ErrorCode, ProtocolVersion},
    service::{ClientInitializeError as Fault, ClientLifecycleMode},
};
use std::io;

/// How a server is greeted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In the newer way, then in the older; without an answer after a short time.
    Either,
    /// In the older alone.
    Older,
    /// In the newer alone, for as long as there is.
    Newer,
}

impl Way {
    /// What rmcp calls it.
    pub(super) fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Either => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Older => ClientLifecycleMode::Initialize,
            Self::Newer => ClientLifecycleMode::Discover { preferred_versions },
        }
    }
}

/// Why a start failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: String,
    /// It was lost, and there may be a better reason than that.
    pub(super) is_lost: bool,
    /// In which way it should be greeted instead, if it may know another.
    pub(super) instead: Option<Way>,
}

impl Failed {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_lost: false, instead: None }
    }

    /// What a greeting failed of.
    pub(super) fn greeting(way: Way, fault: &Fault) -> Self {
        let older = (way == Way::Either).then_some(Way::Older);
        match fault {
            // The newer way is no way; what came of the older counts.
            Fault::LegacyFallbackFailed { fallback, .. } => {
                let instead = knows_no_older(fallback).then_some(Way::Newer);
                Self { instead, ..Self::greeting(Way::Older, fallback) }
            }
            Fault::ConnectionClosed(_) | Fault::TransportError { .. } => {
                Self { why: lost(fault), is_lost: true, instead: older }
            }
            Fault::JsonRpcError(error) => {
                Self::because(format!("it refuses the handshake: {}", error.message))
            }
            // Both show all of what came.
            Fault::ExpectedInitResult(_) | Fault::ExpectedInitResponse(_) => {
                Self { instead: older, ..Self::because("what it answers to the handshake makes no sense") }
            }
            fault => Self { instead: older, ..Self::because(format!("the handshake failed: {fault}")) },
        }
    }
}

/// Whether a server that was greeted in the older way says that it does not know that.
fn knows_no_older(fault: &Fault) -> bool {
    let Fault::JsonRpcError(error) = fault else { return false };
    [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION].contains(&error.code)
}

fn lost(fault: &Fault) -> String {
    match fault {
        Fault::TransportError { error, .. } if error.error.is::<io::Error>() => {
            "it closed its input".to_owned()
        }
        Fault::TransportError { error, .. } => causes(error.error.as_ref()),
        fault => format!("the handshake failed: {fault}"),
    }
}
