//! The log, on standard error: results stay clean.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// The variable that says what is logged, such as `toolyard=debug`.
pub(crate) const VARIABLE: &str = "TOOLYARD_LOG";

/// Starts the log: warnings, unless [`VARIABLE`] says otherwise. A filter that cannot be read counts as none.
pub(crate) fn start() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(VARIABLE)
        .from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    // A second subscriber in one process is not this program's to complain about.
    let _ = log.with_writer(std::io::stderr).with_ansi(false).try_init();
}
