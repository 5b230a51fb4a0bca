//! The metric instruments.

use crate::{SCOPE, observed::ObservedEngines};
use opentelemetry::{
    InstrumentationScope, KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider as _},
};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::sync::Arc;
use toolyard::{BreakerOf, BreakerState, ErrorKind, telemetry};

/// Bucket bounds in seconds: those that the conventions give for model operations, with some below for tools that only
/// read and some above for tools that build something.
const SECONDS: [f64; 21] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48,
    40.96, 81.92, 163.84, 327.68, 655.36,
];

/// Bucket bounds for attempts; higher numbers are rare.
const ATTEMPTS: [f64; 6] = [0.0, 1.0, 2.0, 3.0, 5.0, 10.0];

/// The instruments that record ended calls.
#[derive(Debug)]
pub(crate) struct Instruments {
    duration: Histogram<f64>,
    queue: Histogram<f64>,
    attempts: Histogram<u64>,
    replays: Counter<u64>,
    missed: Counter<u64>,
}

impl Instruments {
    pub(crate) fn new(provider: &SdkMeterProvider, observed: &Arc<ObservedEngines>) -> Self {
        let scope = InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        show_permits(&meter, observed.clone());
        show_breakers(&meter, observed.clone());
        let seconds = |name, what| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(what);
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let attempts = meter.u64_histogram(telemetry::ATTEMPTS).with_unit("{attempt}");
        let attempts = attempts.with_description("Attempts of a call, 0 if it never started");
        let replays = meter.u64_counter(telemetry::IDEMPOTENCY_REPLAYS).with_unit("{call}");
        let missed = meter.u64_counter(telemetry::EVENTS_MISSED).with_unit("{event}");
        Self {
            duration: seconds(
                telemetry::EXECUTE_TOOL_DURATION,
                "Duration of a tool execution, over all attempts",
            ),
            queue: seconds(telemetry::QUEUE_DURATION, "Time a call waited for its first permits"),
            attempts: attempts.with_boundaries(ATTEMPTS.to_vec()).build(),
            replays: replays
                .with_description("Calls answered with the stored result of another call")
                .build(),
            missed: missed.with_description("Attempts and ends dropped because the queue was full").build(),
        }
    }

    /// Records the end of a call whose handler was started.
    pub(crate) fn record_run(&self, tool: &Arc<str>, seconds: f64, queued: f64, error: Option<ErrorKind>) {
        let tool = KeyValue::new(telemetry::TOOL_NAME, tool.clone());
        self.queue.record(queued, std::slice::from_ref(&tool));
        let operation = KeyValue::new(telemetry::OPERATION_NAME, telemetry::EXECUTE_TOOL);
        let kind = KeyValue::new(telemetry::TOOL_TYPE, telemetry::FUNCTION);
        match error.map(of_error) {
            None => self.duration.record(seconds, &[operation, tool, kind]),
            Some(error) => self.duration.record(seconds, &[operation, tool, kind, error]),
        }
    }

    /// Records how many attempts an ended call made.
    pub(crate) fn record_attempts(&self, tool: &Arc<str>, attempts: u32, error: Option<ErrorKind>) {
        let tool = KeyValue::new(telemetry::TOOL_NAME, tool.clone());
        match error.map(of_error) {
            None => self.attempts.record(attempts.into(), &[tool]),
            Some(error) => self.attempts.record(attempts.into(), &[tool, error]),
        }
    }

    /// Records a call that was answered with the kept result of another.
    pub(crate) fn record_replay(&self, tool: &Arc<str>) {
        self.replays.add(1, &[KeyValue::new(telemetry::TOOL_NAME, tool.clone())]);
    }

    /// Records ends and attempts that were dropped, and so appear in no other metric.
    pub(crate) fn record_missed(&self, count: u64) {
        self.missed.add(count, &[]);
    }
}

fn of_error(kind: ErrorKind) -> KeyValue {
    KeyValue::new(telemetry::ERROR_TYPE, kind.code())
}

fn show_permits(meter: &Meter, observed: Arc<ObservedEngines>) {
    let gauge = meter.u64_observable_gauge(telemetry::PERMITS_IN_USE).with_unit("{permit}");
    let gauge = gauge.with_description("Permits in use");
    gauge
        .with_callback(move |gauge| {
            for (class, held) in observed.permits() {
                gauge.observe(held as u64, &[KeyValue::new(telemetry::POOL, class.as_str())]);
            }
        })
        .build();
}

fn show_breakers(meter: &Meter, observed: Arc<ObservedEngines>) {
    let gauge = meter.u64_observable_gauge(telemetry::BREAKER_STATE).with_unit("1");
    let gauge = gauge.with_description("1 for the state a breaker is in, 0 for the others");
    gauge
        .with_callback(move |gauge| {
            for breaker in observed.breakers() {
                let whose = match breaker.of {
                    BreakerOf::Tool(name) => KeyValue::new(telemetry::TOOL_NAME, name),
                    BreakerOf::Backend(name) => KeyValue::new(telemetry::BACKEND, name),
                    BreakerOf::Sandbox(sandbox) => KeyValue::new(telemetry::SANDBOX, sandbox.as_str()),
                };
                for state in BreakerState::ALL {
                    let which = KeyValue::new(telemetry::BREAKER_STATE, state.as_str());
                    gauge.observe(u64::from(state == breaker.state), &[whose.clone(), which]);
                }
            }
        })
        .build();
}
