//! Spans as a collector sees them.

use crate::{
    receiver::{Receiver, attributes},
    scene::{ENDS, builder, codes, play},
};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use std::collections::BTreeMap;
use toolyard_otel::{Settings, Telemetry};

async fn spans(content: bool) -> (Receiver, BTreeMap<String, Span>) {
    let receiver = Receiver::start();
    let settings =
        Settings::to(receiver.address()).service_name("tests").attribute("service.instance.id", "7");
    let telemetry = Telemetry::start(settings).unwrap();
    let (outcomes, sent) = play(telemetry, builder().trace_content(content)).await;
    assert_eq!((codes(&outcomes), sent), (ENDS.to_vec(), true));
    let id = |span: &Span| attributes(&span.attributes)["gen_ai.tool.call.id"].clone();
    let spans: BTreeMap<_, _> = receiver.spans().into_iter().map(|span| (id(&span), span)).collect();
    assert_eq!(spans.len(), receiver.spans().len(), "one span a call");
    (receiver, spans)
}

fn status(span: &Span) -> StatusCode {
    span.status.as_ref().map_or(StatusCode::Unset, |status| status.code())
}

/// OB-4: a collector sees one span per call, however it ended, named by the conventions.
#[tokio::test(start_paused = true)]
async fn one_span_a_call() {
    let (receiver, spans) = spans(false).await;
    let shown: Vec<_> = spans
        .iter()
        .map(|(id, span)| {
            let of = attributes(&span.attributes);
            let get = |key: &str| of.get(key).cloned().unwrap_or_default();
            let (error, attempts) = (get("error.type"), get("dispatch.attempts"));
            assert_eq!(status(span) == StatusCode::Error, !error.is_empty(), "{id}");
            assert_eq!(span.kind(), SpanKind::Internal);
            assert_eq!(
                (get("gen_ai.operation.name").as_str(), get("gen_ai.conversation.id").as_str()),
                ("execute_tool", "demo")
            );
            format!("{id}: {} {attempts} {error}{}", span.name, get("dispatch.dedupe"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "failing: execute_tool fails 1 execution_error",
            "first: execute_tool once 1 ",
            "inner: execute_tool waits 1 ",
            "nesting: execute_tool outer 1 ",
            "ok: execute_tool waits 1 ",
            "replayed: execute_tool once 0 replayed",
            "retried: execute_tool flaky 3 ",
            "shut: execute_tool fails 0 circuit_open",
            "unknown: execute_tool _unknown 0 not_found",
        ]
    );
    for resource in receiver.resources() {
        assert_eq!(
            (resource["service.name"].as_str(), resource["service.instance.id"].as_str()),
            ("tests", "7")
        );
    }
}

/// OB-4: the exact attributes of a call that ran.
#[tokio::test(start_paused = true)]
async fn attributes_of_a_call() {
    let (_, spans) = spans(false).await;
    let of = attributes(&spans["retried"].attributes);
    let wanted = [
        ("dispatch.attempts", "3"),
        ("dispatch.batch", "1"),
        ("dispatch.queue.duration", "0.0"),
        ("dispatch.turn", "1"),
        ("gen_ai.agent.id", "root"),
        ("gen_ai.conversation.id", "demo"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.call.id", "retried"),
        ("gen_ai.tool.description", "Works the third time."),
        ("gen_ai.tool.name", "flaky"),
        ("gen_ai.tool.type", "function"),
    ];
    let wanted: BTreeMap<_, _> = wanted.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(of, wanted);
}

/// OB-4: nested calls are in the trace of their parent call; other calls start traces of their own.
#[tokio::test(start_paused = true)]
async fn nested_calls_are_children() {
    let (_, spans) = spans(false).await;
    let (outer, inner) = (&spans["nesting"], &spans["inner"]);
    assert_eq!((&inner.parent_span_id, &inner.trace_id), (&outer.span_id, &outer.trace_id));
    assert!(inner.start_time_unix_nano >= outer.start_time_unix_nano);
    assert!(inner.end_time_unix_nano <= outer.end_time_unix_nano);
    let roots = spans.iter().filter(|(id, _)| *id != "inner");
    roots.for_each(|(id, span)| assert!(span.parent_span_id.is_empty(), "{id}"));
}

/// OB-4, I15: content is exported only on request.
#[tokio::test(start_paused = true)]
async fn content_is_opt_in() {
    let (_, without) = spans(false).await;
    let said = format!("{without:?}");
    assert!(!said.contains("hush") && !said.contains("made_up") && !said.contains("no such thing"), "{said}");
    let (_, with) = spans(true).await;
    let of = attributes(&with["first"].attributes);
    assert_eq!(of["gen_ai.tool.call.arguments"], r#"{"note": "hush"}"#);
    assert_eq!(of["gen_ai.tool.call.result"], "written");
}
