//! The log, on standard error: results stay clean.

use crate::export::Export;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// The variable that says what is logged, such as `toolyard=debug`.
pub(crate) const VARIABLE: &str = "TOOLYARD_LOG";

/// Starts the log: warnings, unless [`VARIABLE`] says otherwise. A filter that cannot be read counts as none.
pub(crate) fn start(export: &Export) {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(VARIABLE)
        .from_env_lossy();
    #[cfg(feature = "otel")]
    if let Some(telemetry) = export.telemetry() {
        return beside(filter, telemetry);
    }
    let _ = export; // nobody else listens
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    // A second subscriber in one process is not this program's to complain about.
    let _ = log.with_writer(std::io::stderr).with_ansi(false).try_init();
}

/// The same beside the export, which what is logged is no matter to.
#[cfg(feature = "otel")]
fn beside(filter: EnvFilter, telemetry: &toolyard_otel::Telemetry) {
    use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let all = tracing_subscriber::registry().with(telemetry.layer()).with(log.with_filter(filter));
    let _ = all.try_init();
}
