//! `/metrics`, for Prometheus.

use super::document::Common;
use crate::{
    access::{Caller, Scope},
    app::App,
    problem::Problem,
};
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::fmt::Write as _;
use toolyard::{BreakerOf, BreakerState, BreakerStatus};

/// Gauges of the engine and the server in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operator",
    responses((status = 200, description = "The gauges", body = String, content_type = "text/plain"), Common))]
pub(super) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.needs(&[Scope::Observe, Scope::Operate])?;
    let engine = app.engine.status().await.map_err(|_| Problem::draining())?;
    let mut text = Text::default();
    text.gauge("toolyard_sessions", "Open sessions.", [(String::new(), app.book.count() as u64)]);
    text.gauge(
        "toolyard_questions",
        "Questions that wait for an answer.",
        [(String::new(), app.front.questions().count() as u64)],
    );
    text.gauge(
        "toolyard_streams",
        "Streams of events that are open.",
        [(String::new(), app.streams.count() as u64)],
    );
    let (kept, forgotten) = app.answered.counts();
    text.gauge(
        "toolyard_idempotency_answers",
        "Answers to requests with an Idempotency-Key that are kept.",
        [(String::new(), kept)],
    );
    text.counter(
        "toolyard_idempotency_answers_forgotten_total",
        "Those that are kept no longer: a repeat is done again.",
        [(String::new(), forgotten)],
    );
    let pools = |value: fn(&toolyard::PoolStatus) -> usize| {
        let sample =
            move |pool: &toolyard::PoolStatus| (label("class", &json!(pool.class)), value(pool) as u64);
        engine.pools.iter().map(sample).collect::<Vec<_>>()
    };
    text.gauge("toolyard_pool_width", "Calls that may run at once.", pools(|pool| pool.width));
    text.gauge("toolyard_pool_running", "Calls that hold a permit.", pools(|pool| pool.running));
    text.gauge("toolyard_pool_queued", "Calls that wait for a permit.", pools(|pool| pool.queued));
    text.gauge(
        "toolyard_parked",
        "Handlers that wait for calls of their own.",
        [(String::new(), engine.parked as u64)],
    );
    let passes = |state: BreakerState| matches!(state, BreakerState::Closed | BreakerState::ForcedClosed);
    let open = |breaker: &BreakerStatus| (of(&breaker.of), u64::from(!passes(breaker.state)));
    text.gauge("toolyard_breaker_open", "Whether a breaker is not closed.", engine.breakers.iter().map(open));
    if let Some(told) = &app.told {
        let told = told.all().map(|(outcome, count)| (label("outcome", &json!(outcome)), count));
        text.counter(
            "toolyard_notifications_total",
            "Questions that somebody elsewhere was to be told of.",
            told,
        );
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0).into_response())
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, u64)>) {
        self.metric("gauge", name, help, samples);
    }

    fn counter(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, u64)>) {
        self.metric("counter", name, help, samples);
    }

    fn metric(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, u64)>,
    ) {
        // Nothing fails to be written into a text.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

fn of(breaker: &BreakerOf) -> String {
    let parts = json!(breaker);
    let (kind, name) =
        parts.as_object().and_then(|parts| parts.iter().next()).expect("a breaker is of one thing");
    label(kind, name)
}

/// A label; a JSON text escapes what its text escapes.
fn label(name: &str, value: &serde_json::Value) -> String {
    format!("{{{name}={value}}}")
}
