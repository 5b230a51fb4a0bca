//! The log. It goes to standard error, which keeps the results clean, and contains no secrets.

use crate::{export::Export, screen::Screen};
use parking_lot::Mutex;
use std::{
    env,
    io::{self, Write},
    panic::{self, PanicHookInfo},
    sync::OnceLock,
};
use toolyard::Redactor;
use tracing_subscriber::EnvFilter;

/// The environment variable with the log filter, such as `toolyard=debug`.
pub(crate) const LOG_ENV: &str = "TOOLYARD_LOG";

/// The filter unless [`LOG_ENV`] is set. Two targets are off because the program reports these errors itself: failed
/// writes of the event file, and unreadable messages from MCP servers. What agents write for people is shown.
const DEFAULT_FILTER: &str = "warn,toolyard::record::events=off,rmcp=off,toolyard_agents=info";

static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// What is drawn below the log.
static SCREEN: Mutex<Option<Screen>> = Mutex::new(None);

/// Starts the log. Invalid directives in the filter are ignored.
pub(crate) fn start(export: &Export) {
    let filter = env::var(LOG_ENV).ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::new(filter.as_deref().unwrap_or(DEFAULT_FILTER));
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| print_panic(info, &default_hook)));
    #[cfg(feature = "otel")]
    if let Some(telemetry) = export.telemetry() {
        return start_with_export(filter, telemetry);
    }
    let _ = export; // used only by the feature `otel`
    // Where nobody reads the log any more, saying so there would be a panic.
    let log = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    // If the process already has a subscriber, keep that one.
    let _ = log.with_writer(|| Redacting(io::stderr())).with_ansi(false).try_init();
}

/// Starts the log beside the export; the log's filter does not affect the export.
#[cfg(feature = "otel")]
fn start_with_export(filter: EnvFilter, telemetry: &toolyard_otel::Telemetry) {
    use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};
    let log = tracing_subscriber::fmt::layer().with_writer(|| Redacting(io::stderr())).with_ansi(false);
    let log = log.log_internal_errors(false);
    let all = tracing_subscriber::registry().with(telemetry.layer()).with(log.with_filter(filter));
    let _ = all.try_init();
}

/// Sets the redactor of the log and of reports, in place of the standard one. Only the first call has an effect.
pub(crate) fn redact(redactor: Redactor) {
    let _ = REDACTOR.set(redactor);
}

/// Writes the log above what is drawn on this screen, from now on.
pub(crate) fn above(screen: Option<Screen>) {
    *SCREEN.lock() = screen;
}

/// A text without secrets, as the log and reports show it.
pub(crate) fn redacted(text: &str) -> String {
    let redactor = REDACTOR.get().cloned().unwrap_or_else(Redactor::standard);
    redactor.text(text).into_owned()
}

/// Prints a panic without secrets. The hook runs before the panic is caught.
fn print_panic(info: &PanicHookInfo<'_>, default_hook: &dyn Fn(&PanicHookInfo<'_>)) {
    let message = info.to_string();
    match redacted(&message) {
        same if same == message => default_hook(info),
        redacted => anstream::eprintln!("{redacted}"),
    }
}

/// Writes lines without secrets. The log passes each line as a whole.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = redacted(&String::from_utf8_lossy(line));
        let screen = SCREEN.lock().clone();
        match screen {
            Some(screen) => screen.suspend(|| self.0.write_all(text.as_bytes()))?,
            None => self.0.write_all(text.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I15: a line of the log contains no secret.
    #[test]
    fn lines_are_redacted() {
        let mut log = Redacting(Vec::new());
        log.write_all(b"WARN connect failed: postgres://ada:swordfish@db\n").unwrap();
        log.flush().unwrap();
        assert_eq!(log.0, b"WARN connect failed: postgres://ada:[redacted: url password]@db\n");
    }
}
