//! The log lines of what nobody expects: panics, and errors without a class (V5).

use super::{Panic, caught};
use std::{borrow::Cow, error::Error, fmt, iter};
use toolyard_core::ToolError;
use toolyard_redact::Redactor;

/// The number of causes of an error that are logged.
const CAUSES_MAX: usize = 32;

impl Panic {
    /// Logs it. `what` says whose code has panicked, and what comes of that.
    pub(crate) fn log(&self, what: impl fmt::Display, tool: Option<&str>, redactor: Option<&Redactor>) {
        self.write(what, tool, Some(&redacted(&self.told(), redactor)));
    }

    /// Logs a panic of a destructor that ends here: where it was raised, and not what it says, because nobody here
    /// knows the secrets that may be in that.
    pub(crate) fn log_drop(&self) {
        self.write("a destructor panicked", None, None);
    }

    #[cold]
    fn write(&self, what: impl fmt::Display, tool: Option<&str>, panic: Option<&str>) {
        let trace = self.trace.as_ref();
        tracing::error!(
            tool,
            panic,
            location = trace.map(|trace| trace.location()),
            backtrace = trace.and_then(|trace| trace.backtrace()).map(display),
            "{what}"
        );
    }

    /// What it was raised with: the message, or an error with its causes.
    fn told(&self) -> Cow<'_, str> {
        let error = || {
            let payload = self.payload.as_deref()?;
            payload.downcast_ref::<Box<dyn Error + Send + Sync>>().map(|error| causes(error.as_ref()))
        };
        let told = self.message().map(Cow::Borrowed).or_else(|| error().map(Cow::Owned));
        told.unwrap_or(Cow::Borrowed("not a string"))
    }
}

/// Logs an error of the embedder's code. `what` says whose it is, and what comes of it.
#[cold]
pub(crate) fn log_error(what: &'static str, error: &(dyn Error + 'static), redactor: Option<&Redactor>) {
    let told = causes(error);
    tracing::error!(error = %redacted(&told, redactor), "{what}");
}

/// Logs the error of a handler that did not classify it.
#[cold]
pub(crate) fn log_unclassified(error: &ToolError, tool: &str, redactor: Option<&Redactor>) {
    let told = error.source().map(|source| causes(source.as_ref()));
    tracing::error!(
        tool,
        error = told.as_deref().map(|told| display(redacted(told, redactor))),
        backtrace = error.backtrace().map(display),
        "a handler failed with an unclassified error"
    );
}

fn redacted<'a>(text: &'a str, redactor: Option<&Redactor>) -> Cow<'a, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

/// The texts of an error and of all its causes, in one line.
fn causes(error: &(dyn Error + 'static)) -> String {
    let chain = iter::successors(Some(error), |link| (*link).source()).take(CAUSES_MAX);
    let texts = caught(|| chain.map(ToString::to_string).collect::<Vec<_>>().join(": "));
    texts.unwrap_or_else(|_| "an error whose text cannot be written".to_owned())
}

#[cfg(test)]
pub(crate) use tests::logged;

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fmt::Write,
        sync::{Arc, Mutex, OnceLock},
    };
    use tracing::{
        Dispatch, Event, Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Id, Record},
        subscriber::{NoSubscriber, with_default},
    };

    /// Records log lines: level and fields.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<String>>);

    struct Line<'a>(&'a mut String);

    impl Visit for Line<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            write!(self.0, " {field}={value:?}").unwrap();
        }
    }

    impl Subscriber for Heard {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.is_event()
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut lines = self.0.lock().unwrap();
            writeln!(lines).unwrap();
            write!(lines, "{}", event.metadata().level()).unwrap();
            event.record(&mut Line(&mut lines));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// What `work` returns, and what it logs on this thread.
    pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
        // With one subscriber in the process, threads that have none would decide for this one too.
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        let heard = Heard::default();
        let done = with_default(heard.clone(), work);
        let lines = std::mem::take(&mut *heard.0.lock().unwrap());
        (done, lines)
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot book")]
    struct Outer(#[source] std::io::Error);

    /// V5: the log line of an unclassified error has the whole chain of its causes.
    #[test]
    fn every_cause_is_logged() {
        assert_eq!(causes(&Outer(std::io::Error::other("no route"))), "cannot book: no route");
    }
}
