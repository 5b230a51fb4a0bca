//! The log, on standard error: results stay clean, and secrets stay out of it.

use crate::export::Export;
use std::{
    env,
    io::{self, Write},
    panic::{self, PanicHookInfo},
    sync::OnceLock,
};
use toolyard::Redactor;
use tracing_subscriber::EnvFilter;

/// The variable that says what is logged, such as `toolyard=debug`.
pub(crate) const VARIABLE: &str = "TOOLYARD_LOG";

/// What is logged unless [`VARIABLE`] says otherwise. An event file that cannot be written is told of in a line of its
/// own, and a request that an MCP client got wrong is that client's to hear of.
const UNLESS_SAID: &str = "warn,toolyard::events=off,rmcp=error";

static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Starts the log. A filter that cannot be read counts as none.
pub(crate) fn start(export: &Export) {
    let filter = env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::new(filter.as_deref().unwrap_or(UNLESS_SAID));
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| tell_panic(info, &before)));
    #[cfg(feature = "otel")]
    if let Some(telemetry) = export.telemetry() {
        return beside(filter, telemetry);
    }
    let _ = export; // nobody else listens
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    // A second subscriber in one process is not this program's to complain about.
    let _ = log.with_writer(|| Redacting(io::stderr())).with_ansi(false).try_init();
}

/// The same beside the export, which what is logged is no matter to.
#[cfg(feature = "otel")]
fn beside(filter: EnvFilter, telemetry: &toolyard_otel::Telemetry) {
    use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};
    let log = tracing_subscriber::fmt::layer().with_writer(|| Redacting(io::stderr())).with_ansi(false);
    let all = tracing_subscriber::registry().with(telemetry.layer()).with(log.with_filter(filter));
    let _ = all.try_init();
}

/// Keeps these secrets out of the log, beside what always looks like one. The first word counts.
pub(crate) fn redact(redactor: Redactor) {
    let _ = REDACTOR.set(redactor);
}

fn shown(text: &str) -> String {
    let redactor = REDACTOR.get().cloned().unwrap_or_else(Redactor::standard);
    redactor.text(text).into_owned()
}

/// A panic tells its text before it is caught: one with a secret is told without it.
fn tell_panic(info: &PanicHookInfo<'_>, otherwise: &dyn Fn(&PanicHookInfo<'_>)) {
    let told = info.to_string();
    match shown(&told) {
        same if same == told => otherwise(info),
        shown => anstream::eprintln!("{shown}"),
    }
}

/// Writes lines without secrets. The log gives each as a whole.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(shown(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I15: a line of the log has no secret.
    #[test]
    fn lines_are_redacted() {
        let mut log = Redacting(Vec::new());
        log.write_all(b"WARN connect failed: postgres://ada:swordfish@db\n").unwrap();
        log.flush().unwrap();
        assert_eq!(log.0, b"WARN connect failed: postgres://ada:[redacted: url password]@db\n");
    }
}
