//! The fields of a call's span.

use crate::seen::{Spans, check};
use serde_json::json;
use std::time::Duration;
use toolyard::{Call, telemetry};
use toolyard_tests::{call, keyed, scripted, tries, yard};

/// OB-4: the span of a call that ran has the fields of the conventions and ours, and no others.
#[tokio::test(start_paused = true)]
async fn a_call_that_ran() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, log| {
        let spec = toolyard::ToolSpec::read("described").describe("Does what it is told.");
        builder.tool(scripted(spec, log)).max_in_flight(1)
    })
    .await;
    yard.engine
        .session("s")
        .dispatch(vec![call("a", "read", 1500, "ok"), call("b", "described", 5, "ok")])
        .await;
    let seen = spans.of("b");
    let wanted = [
        (telemetry::AGENT_ID, "root"),
        (telemetry::ATTEMPTS, "1"),
        (telemetry::BATCH, "1"),
        (telemetry::CONVERSATION_ID, "s"),
        (telemetry::OPERATION_NAME, "execute_tool"),
        (telemetry::OTEL_KIND, "internal"),
        (telemetry::OTEL_NAME, "execute_tool described"),
        (telemetry::QUEUE_DURATION, "1.5"),
        (telemetry::TOOL_CALL_ID, "b"),
        (telemetry::TOOL_DESCRIPTION, "Does what it is told."),
        (telemetry::TOOL_NAME, "described"),
        (telemetry::TOOL_TYPE, "function"),
        (telemetry::TURN, "1"),
    ];
    let wanted: std::collections::BTreeMap<_, _> =
        wanted.into_iter().map(|(field, value)| (field, value.to_owned())).collect();
    assert_eq!(seen.fields, wanted);
    check(&spans);
}

/// RT-9, OB-4: all attempts of a call share one span, which has the call's final error.
#[tokio::test(start_paused = true)]
async fn attempts_share_a_span() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    assert!(session.call(tries("a", "read", 0, &["transient", "transient", "ok"])).await.success());
    session.call(call("b", "read", 0, "transient")).await;
    let (a, b) = (spans.of("a"), spans.of("b"));
    assert_eq!((a.get("dispatch.attempts"), a.get("error.type"), a.get("otel.status_code")), ("3", "", ""));
    assert_eq!(
        (b.get("dispatch.attempts"), b.get("error.type"), b.get("otel.status_code")),
        ("3", "transient", "ERROR")
    );
    check(&spans);
}

/// OB-4: a refused call has a span that says why; an unknown tool name is not recorded.
#[tokio::test(start_paused = true)]
async fn refused_calls() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let calls = vec![call("a", "made_up", 0, "ok"), Call::new("b", "read", "{")];
    yard.engine.session("s").dispatch(calls).await;
    let (a, b) = (spans.of("a"), spans.of("b"));
    assert_eq!((a.get("gen_ai.tool.name"), a.get("error.type")), ("_unknown", "not_found"));
    assert_eq!((a.get("gen_ai.tool.type"), a.get("dispatch.attempts")), ("", "0"));
    assert_eq!((b.get("gen_ai.tool.name"), b.get("error.type")), ("read", "invalid_input"));
    assert!(!format!("{:?}", spans.calls()).contains("made_up"));
    check(&spans);
}

/// OB-4, ID-3, ID-6: a call that shares the result of another says so, and has no attempts.
#[tokio::test(start_paused = true)]
async fn shared_results() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let call_keyed = |id: &str| keyed("k", call(id, "concurrent", 10, "ok"));
    session.dispatch(vec![call_keyed("a"), call_keyed("b")]).await;
    session.call(call_keyed("c")).await;
    let shown = |id: &str| {
        let seen = spans.of(id);
        (seen.get("dispatch.dedupe").to_owned(), seen.get("dispatch.attempts").to_owned())
    };
    assert_eq!(shown("a"), (String::new(), "1".to_owned()));
    assert_eq!(shown("b"), ("joined".to_owned(), "0".to_owned()));
    assert_eq!(shown("c"), ("replayed".to_owned(), "0".to_owned()));
    check(&spans);
}

/// OB-4, SC-4: a call cancelled between two attempts ends its span as cancelled, even while its turn is kept.
#[tokio::test(start_paused = true)]
async fn cancelled_in_backoff() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let calls = vec![call("a", "read", 0, "transient")];
    tokio::join!(turn.dispatch(calls), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        turn.cancel();
    });
    let seen = spans.of("a");
    assert_eq!((seen.get("dispatch.attempts"), seen.get("error.type")), ("1", "cancelled"));
    check(&spans);
}

/// OB-4, ID-4: a caller that takes over a flight has its own span for the attempts that follow.
#[tokio::test(start_paused = true)]
async fn taken_over_flights() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let (first, second) = (session.turn(), session.turn());
    let ends = ["harmless", "ok"];
    let led = keyed("k", tries("a", "concurrent", 0, &ends));
    let joined = keyed("k", tries("b", "concurrent", 0, &ends));
    let (_, outcomes, ()) = tokio::join!(first.dispatch(vec![led]), second.dispatch(vec![joined]), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        first.cancel();
    });
    assert!(outcomes[0].success());
    let (a, b) = (spans.of("a"), spans.of("b"));
    assert_eq!((a.get("dispatch.attempts"), a.get("error.type")), ("1", "cancelled"));
    assert_eq!((b.get("dispatch.attempts"), b.get("error.type")), ("2", ""));
    check(&spans);
}

/// OB-4: arguments and results are in spans only if the embedder opts in.
#[tokio::test(start_paused = true)]
async fn content_is_opt_in() {
    for wanted in [false, true] {
        let (spans, _listening) = Spans::listen();
        let yard = yard(|builder, _| builder.trace_content(wanted)).await;
        let session = yard.engine.session("s");
        session.call(Call::new("a", "read", json!({"note": "n-17"}))).await;
        session.call(call("b", "read", 0, "fail")).await;
        session.call(Call::new("c", "made_up", json!({"note": "n-18"}))).await;
        let shown = |id: &str, field: &str| spans.of(id).get(field).to_owned();
        let (arguments, result) = (telemetry::TOOL_CALL_ARGUMENTS, telemetry::TOOL_CALL_RESULT);
        if wanted {
            assert_eq!(
                (shown("a", arguments).as_str(), shown("a", result).as_str()),
                (r#"{"note":"n-17"}"#, "a")
            );
            assert!(shown("b", result).contains("HTTP 404: no such thing"));
            assert!(shown("c", arguments).contains("n-18") && shown("c", result).contains("made_up"));
        } else {
            let all = format!("{:?}", spans.calls());
            assert!(
                !all.contains("n-1") && !all.contains("no such thing") && !all.contains("made_up"),
                "{all}"
            );
        }
        check(&spans);
    }
}
