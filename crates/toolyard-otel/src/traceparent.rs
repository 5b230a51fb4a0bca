//! The trace of a call, for what it asks of other machines.

use opentelemetry::trace::TraceContextExt;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The current span as the value of the header `traceparent`, by W3C Trace Context. In a handler that is the span of its
/// call, also for its later attempts.
///
/// `None` where nothing exports the current span: then there is no trace that another service could be a part of. A trace
/// that was not sampled has a header, which says so, so that services do not sample it either.
///
/// # Examples
/// ```
/// // A tool that asks another machine by itself:
/// let headers: Vec<(&str, String)> =
///     toolyard_otel::traceparent().map(|trace| ("traceparent", trace)).into_iter().collect();
/// assert!(headers.is_empty()); // nothing is exported here
/// ```
pub fn traceparent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    let of = span.span_context();
    let flags = u8::from(of.is_sampled());
    of.is_valid().then(|| format!("00-{}-{}-{flags:02x}", of.trace_id(), of.span_id()))
}
