//! Why an engine cannot be built.

use crate::tool::RegisterError;
use toolyard_core::SettingError;

/// Why an engine cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// Settings name a tool that is not registered.
    #[error("settings for a tool that is not registered: '{name}'; registered tools: {}", known.join(", "))]
    UnknownTool {
        /// The unknown name.
        name: String,
        /// The names of the registered tools.
        known: Vec<String>,
    },
    /// A bound is zero.
    #[error("{field} must not be zero")]
    Zero {
        /// The setting that is zero.
        field: &'static str,
    },
    /// A setting makes no sense (KT-4).
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// `build` was not called within a tokio runtime.
    #[error("an engine must be built inside a tokio runtime")]
    NoRuntime,
    /// The tokio runtime has no timers. Build it with `enable_time` or `enable_all`.
    #[error(
        "an engine must be built inside a tokio runtime with timers: enable them with `enable_time` or `enable_all`"
    )]
    NoTimers,
    /// The actors could not be started.
    #[error("the pools could not be started")]
    Pools(#[source] Box<dyn std::error::Error + Send + Sync>),
}
