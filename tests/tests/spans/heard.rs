//! A subscriber that records log lines, and threads on which it listens.

use futures::{executor::block_on, future::BoxFuture};
use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    thread,
};
use toolyard::{Blocking, telemetry::TOOL_CALL_ID};
use tracing::{
    Dispatch, Event, Subscriber,
    dispatcher::{get_default, with_default},
    field::{Field, Visit},
    span::{Attributes, Id},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

/// The log lines of this crate and the engine: level, call, fields.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// Subscribes until the guard is dropped.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let guard = toolyard_tests::listen(Registry::default().with(lines.clone()));
        (lines, guard)
    }

    /// All lines so far, which are forgotten.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The lines in the span of this call.
    pub(crate) fn of(&self, call: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let of = |line: &&String| line.split(' ').nth(1) == Some(call);
        lines.iter().filter(of).cloned().collect()
    }
}

/// The call of a span.
struct CallOf(String);

#[derive(Default)]
struct Fields(String, Option<CallOf>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == TOOL_CALL_ID {
            self.1 = Some(CallOf(value.to_owned()));
        }
        self.record_debug(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(call) = fields.1 {
            cx.span(id).unwrap().extensions_mut().insert(call);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let span = cx.event_span(event);
        let call = span.and_then(|span| span.extensions().get::<CallOf>().map(|call| call.0.clone()));
        let line = format!("{} {}{}", event.metadata().level(), call.as_deref().unwrap_or("-"), fields.0);
        self.0.lock().unwrap().push(line);
    }
}

/// Threads that listen as the test does.
pub(crate) struct Threads(Dispatch);

impl Threads {
    pub(crate) fn listening() -> Arc<Self> {
        Arc::new(Self(get_default(Dispatch::clone)))
    }
}

impl Blocking for Threads {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        let dispatch = self.0.clone();
        thread::spawn(move || with_default(&dispatch, || block_on(job)));
    }
}
