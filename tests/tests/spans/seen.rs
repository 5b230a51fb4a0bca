//! A subscriber that records the spans of calls and their parents.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use toolyard::telemetry::{OTEL_NAME, TOOL_CALL_ID};
use tracing::{
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

/// A recorded span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    /// The parent's call id, or its name if it is not the span of a call.
    pub(crate) parent: Option<String>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    pub(crate) closed: bool,
}

impl Seen {
    /// A field's value; empty if it has none.
    pub(crate) fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// The spans of this thread, in the order in which they were opened.
#[derive(Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<(Id, Seen)>>>);

impl Spans {
    /// Subscribes until the guard is dropped.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let spans = Self::default();
        let guard = toolyard_tests::listen(Registry::default().with(spans.clone()));
        (spans, guard)
    }

    /// All spans of calls.
    pub(crate) fn calls(&self) -> Vec<Seen> {
        let all = self.0.lock().unwrap();
        all.iter().map(|(_, seen)| seen.clone()).filter(|seen| seen.name == "execute_tool").collect()
    }

    /// The only span of the call with this id.
    pub(crate) fn of(&self, call: &str) -> Seen {
        let mut of: Vec<_> = self.calls().into_iter().filter(|seen| seen.get(TOOL_CALL_ID) == call).collect();
        assert_eq!(of.len(), 1, "spans of {call}: {of:?}");
        of.remove(0)
    }

    /// The names of spans that have not been closed, except those of actors, which live on.
    pub(crate) fn open(&self) -> Vec<&'static str> {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|(_, seen)| !seen.closed && seen.name != "Actor")
            .map(|(_, seen)| seen.name)
            .collect()
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut all = self.0.lock().unwrap();
        // Ids are reused: the latest span with this id is meant.
        change(&mut all.iter_mut().rev().find(|(of, _)| of == id).unwrap().1);
    }

    fn label(&self, id: &Id) -> String {
        let all = self.0.lock().unwrap();
        let seen = &all.iter().rev().find(|(of, _)| of == id).unwrap().1;
        seen.fields.get(TOOL_CALL_ID).cloned().unwrap_or_else(|| seen.name.to_owned())
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let parent = cx.span(id).unwrap().parent().map(|parent| self.label(&parent.id()));
        let mut seen = Seen { name: attributes.metadata().name(), parent, ..Seen::default() };
        attributes.record(&mut seen);
        self.0.lock().unwrap().push((id.clone(), seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |seen| values.record(seen));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |seen| seen.closed = true);
    }
}

/// Checks that every span of a call was closed and is named after its tool.
pub(crate) fn check(spans: &Spans) {
    for seen in spans.calls() {
        assert!(seen.closed, "left open: {seen:?}");
        assert_eq!(seen.get(OTEL_NAME), format!("execute_tool {}", seen.get("gen_ai.tool.name")));
    }
}
