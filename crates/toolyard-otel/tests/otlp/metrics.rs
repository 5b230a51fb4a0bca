//! Metrics as a collector sees them.

use crate::{
    receiver::{Receiver, attributes},
    scene::{ENDS, builder, codes, play},
};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point::Value};
use std::collections::BTreeMap;
use toolyard::{Call, Drain, ToolClass};
use toolyard_otel::{Settings, Telemetry};

/// Each point of a metric on one line: its attributes, count and sum.
fn points(metric: &Metric) -> Vec<String> {
    let label = |of: &[_]| attributes(of).into_values().collect::<Vec<_>>().join(" ");
    let number = |value: &Option<Value>| match value {
        Some(Value::AsInt(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let mut points: Vec<_> = match metric.data.as_ref().unwrap() {
        Data::Histogram(histogram) => {
            let all = histogram.data_points.iter();
            all.map(|it| format!("{}: {} {:.2}", label(&it.attributes), it.count, it.sum.unwrap())).collect()
        }
        Data::Sum(sum) => {
            assert!(sum.is_monotonic);
            sum.data_points
                .iter()
                .map(|it| format!("{}: {}", label(&it.attributes), number(&it.value)))
                .collect()
        }
        Data::Gauge(gauge) => gauge
            .data_points
            .iter()
            .map(|it| format!("{}: {}", label(&it.attributes), number(&it.value)))
            .collect(),
        other => panic!("{other:?}"),
    };
    points.sort();
    points
}

async fn metrics() -> BTreeMap<String, Metric> {
    let receiver = Receiver::start();
    let telemetry = Telemetry::start(Settings::to(receiver.address())).unwrap();
    let (outcomes, sent) = play(telemetry, builder().seed(1)).await;
    assert_eq!((codes(&outcomes), sent), (ENDS.to_vec(), true));
    receiver.metrics()
}

/// OB-4: how long calls ran and waited, over all attempts, per tool and error.
#[tokio::test(start_paused = true)]
async fn durations() {
    let metrics = metrics().await;
    let duration = &metrics["gen_ai.execute_tool.duration"];
    assert_eq!(duration.unit, "s");
    let shown = points(duration);
    let without_backoff: Vec<_> = shown.iter().filter(|point| !point.contains("flaky")).collect();
    assert_eq!(
        without_backoff,
        [
            "execute_tool once function: 1 0.00",
            "execute_tool outer function: 1 0.02",
            "execute_tool waits function: 2 0.04",
            "execution_error execute_tool fails function: 1 0.00",
        ]
    );
    assert!(shown.iter().any(|point| point.starts_with("execute_tool flaky function: 1 ")), "{shown:?}");
    assert!(!shown.contains(&"execute_tool flaky function: 1 0.00".to_owned()), "backoff counts: {shown:?}");
    let queue = points(&metrics["dispatch.queue.duration"]);
    assert_eq!(queue, ["fails: 1 0.00", "flaky: 1 0.00", "once: 1 0.00", "outer: 1 0.00", "waits: 2 0.00"]);
}

/// OB-4: attempts per call, including calls that never started, and replays.
#[tokio::test(start_paused = true)]
async fn attempts_and_replays() {
    let metrics = metrics().await;
    assert_eq!(
        points(&metrics["dispatch.attempts"]),
        [
            "circuit_open fails: 1 0.00",
            "execution_error fails: 1 1.00",
            "flaky: 1 3.00",
            "not_found _unknown: 1 0.00",
            "once: 1 1.00",
            "outer: 1 1.00",
            "waits: 2 2.00",
        ]
    );
    assert_eq!(points(&metrics["dispatch.idempotency.replays"]), ["once: 1"]);
    assert!(!metrics.contains_key("dispatch.events.missed"));
}

/// OB-4, CB-10: pools and breakers as they were when the engine stopped.
#[tokio::test(start_paused = true)]
async fn gauges() {
    let metrics = metrics().await;
    assert_eq!(points(&metrics["dispatch.permits.in_use"]), ["concurrent: 0", "read: 0", "serial: 0"]);
    let breakers = points(&metrics["dispatch.breaker.state"]);
    let set: Vec<_> = breakers.iter().filter(|point| point.ends_with(": 1")).collect();
    assert_eq!(
        set,
        ["closed flaky: 1", "closed once: 1", "closed outer: 1", "closed waits: 1", "forced_open fails: 1",]
    );
    assert_eq!(breakers.len(), 5 * 5);
}

/// OB-4, ID-6: a replayed failure counts as a replay, not as an attempt.
#[tokio::test(start_paused = true)]
async fn replayed_failures() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::start(Settings::to(receiver.address())).unwrap();
    let engine = builder().events(telemetry.sink()).build().await.unwrap();
    let session = engine.session("demo");
    for id in ["a", "b", "c"] {
        let mut call = Call::new(id, "fails", "{}");
        call.idempotency_key = Some("key".into());
        session.call(call).await;
    }
    engine.shutdown(Drain::default()).await;
    assert!(telemetry.shutdown(crate::scene::PLENTY));
    let metrics = receiver.metrics();
    assert_eq!(points(&metrics["dispatch.attempts"]), ["execution_error fails: 1 1.00"]);
    assert_eq!(points(&metrics["dispatch.idempotency.replays"]), ["fails: 2"]);
}

/// OB-4: permits count as held only while their calls run.
#[tokio::test(start_paused = true)]
async fn permits_in_use() {
    let engine = builder().build().await.unwrap();
    let (session, gauges) = (engine.session("demo"), engine.gauges());
    let held = || gauges.permits_in_use(ToolClass::Read);
    let calls = vec![Call::new("a", "waits", "{}"), Call::new("b", "waits", "{}")];
    let (_, while_they_run) = tokio::join!(session.dispatch(calls), async {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        held()
    });
    assert_eq!((while_they_run, held()), (Some(2), Some(0)));
}

/// OB-4: with more calls at once than the queue holds, every call is either counted or reported as missed.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_in_silence() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::start(Settings::to(receiver.address())).unwrap();
    let engine = builder().events(telemetry.sink()).build().await.unwrap();
    let calls = |batch: usize| (0..10_000).map(move |at| Call::new(format!("{batch}-{at}"), "made_up", "{}"));
    for batch in 0..10 {
        engine.session("demo").dispatch(calls(batch).collect::<Vec<_>>()).await;
    }
    engine.shutdown(Drain::default()).await;
    assert!(telemetry.shutdown(crate::scene::PLENTY));
    let metrics = receiver.metrics();
    let Some(Data::Histogram(attempts)) = &metrics["dispatch.attempts"].data else { panic!("{metrics:?}") };
    let missed = metrics.get("dispatch.events.missed").map_or(0, |missed| match &missed.data {
        Some(Data::Sum(sum)) => match sum.data_points[0].value {
            Some(Value::AsInt(number)) => u64::try_from(number).unwrap(),
            _ => panic!("{missed:?}"),
        },
        _ => panic!("{missed:?}"),
    });
    assert_eq!(attempts.data_points[0].count + missed, 100_000);
}
