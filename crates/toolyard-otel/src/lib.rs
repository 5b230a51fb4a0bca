//! Exports the traces and metrics of an engine to OpenTelemetry, as protobuf over OTLP/HTTP.
//!
//! ```text
//!   engine ── spans ──► tracing ──► layer ──► batches ─┐
//!      │                                               ├─► OTLP/HTTP ──► a collector
//!      ├── ends of calls ──► queue ──► histograms ─────┤
//!      └── gauges, when they are collected ────────────┘
//! ```
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use toolyard::{Drain, Engine};
//! use toolyard_otel::{Settings, Telemetry};
//! use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
//!
//! let settings = Settings::from_env("my-agent")?.unwrap_or_else(|| Settings::to("http://localhost:4318"));
//! let telemetry = Telemetry::start(settings)?;
//! tracing_subscriber::registry().with(telemetry.layer()).init();
//! let engine = Engine::builder().events(telemetry.sink()).build().await?;
//! telemetry.observe(&engine);
//! // ...
//! engine.shutdown(Drain::default()).await;
//! telemetry.shutdown(Duration::from_secs(5)); // what is left is sent, or given up by then
//! # Ok(())
//! # }
//! ```
//!
//! The tables in [`toolyard::telemetry`] list what spans and metrics contain. A call pays only for its span and for a
//! place in a bounded queue. A collector that is slow or down costs spans and points, never calls. TLS is not
//! supported: run the collector beside the program, and let it forward the data.

mod client;
mod export;
mod metrics;
mod observed;
mod queue;
mod settings;
mod tally;
mod traceparent;

pub use queue::EndsSink;
pub use settings::{Settings, SetupError};
pub use traceparent::traceparent;

use metrics::Instruments;
use observed::ObservedEngines;
use opentelemetry::{InstrumentationScope, trace::TracerProvider as _};
use opentelemetry_sdk::{
    metrics::SdkMeterProvider,
    trace::{SdkTracer, SdkTracerProvider},
};
use queue::PointQueue;
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use toolyard::{Engine, telemetry::TARGET};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// The instrumentation scope of the exported spans and metrics.
const SCOPE: &str = "toolyard";

/// The export of an engine's traces and metrics.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    meters: Option<SdkMeterProvider>,
    queue: Arc<PointQueue>,
    observed: Arc<ObservedEngines>,
}

impl Telemetry {
    /// Starts the export threads. Nothing is sent until there is something to send.
    ///
    /// # Errors
    /// [`SetupError`] if the settings are invalid. A collector that cannot be reached is not an error.
    pub fn start(settings: Settings) -> Result<Self, SetupError> {
        let resource = settings.resource();
        let traces = export::traces(&settings, resource.clone())?;
        let meters = export::meters(&settings, resource)?;
        let observed = Arc::new(ObservedEngines::default());
        let queue = match &meters {
            Some(meters) => {
                let instruments = Instruments::new(meters, &observed);
                PointQueue::recorded_by(instruments)
            }
            None => PointQueue::disabled(),
        };
        Ok(Self { traces, meters, queue, observed })
    }

    /// The `tracing` layer that exports the spans of calls and nothing else, because log events inside them may hold
    /// data that is not meant for traces.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let layer = tracing_opentelemetry::layer().with_tracer(self.tracer()?);
        let layer =
            layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        Some(layer.with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET)))
    }

    /// The tracer for an embedder's own layer, to export other spans besides those of calls; `None` if traces are not
    /// exported.
    pub fn tracer(&self) -> Option<SdkTracer> {
        let scope = InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build();
        self.traces.as_ref().map(|traces| traces.tracer_with_scope(scope))
    }

    /// The sink that counts how calls end, for [`EngineBuilder::events`](toolyard::EngineBuilder::events).
    pub fn sink(&self) -> EndsSink {
        EndsSink::new(self.queue.clone(), self.observed.clone())
    }

    /// Adds this engine's permits and breakers to the metrics. This does not keep the engine alive.
    pub fn observe(&self, engine: &Engine) {
        self.observed.watch(engine.gauges());
    }

    /// Sends what is left, within this limit. Returns `false` if the time was too short or something could not be sent.
    ///
    /// This blocks; in an async runtime, call it on a thread that may block.
    pub fn shutdown(mut self, limit: Duration) -> bool {
        self.queue.close();
        let (traces, meters) = (self.traces.take(), self.meters.take());
        let (tell, told) = mpsc::channel();
        // On a thread of its own, because each exporter only knows its own limit. The thread may outlive this call.
        let stopping = thread::Builder::new().name("toolyard-otel-end".to_owned()).spawn(move || {
            let traces =
                thread::spawn(move || traces.is_none_or(|it| it.shutdown_with_timeout(limit).is_ok()));
            let meters = meters.is_none_or(|it| it.shutdown_with_timeout(limit).is_ok());
            let all = traces.join().unwrap_or(false) && meters;
            let _ = tell.send(all); // the receiver may have given up
        });
        stopping.is_ok() && told.recv_timeout(limit).unwrap_or(false)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.queue.close();
    }
}
