//! Exports what an engine does by OpenTelemetry: traces and metrics, as OTLP over HTTP, protobuf.
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
//! What spans and metrics say is in the tables of [`toolyard::telemetry`]. Nothing here is on the way of a call but
//! the span itself and a place in a bounded queue; a collector that is slow or away costs spans and points, never
//! calls. There is no TLS: the collector is beside the program, and it is the collector that goes out.

mod client;
mod ends;
mod export;
mod metrics;
mod settings;
mod tally;
mod watched;

pub use ends::EndsSink;
pub use settings::{Settings, SetupError};

use ends::Ends;
use metrics::Instruments;
use opentelemetry::{InstrumentationScope, trace::TracerProvider as _};
use opentelemetry_sdk::{
    metrics::SdkMeterProvider,
    trace::{SdkTracer, SdkTracerProvider},
};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use toolyard::{Engine, telemetry::TARGET};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};
use watched::Watched;

/// The name under which spans and metrics are exported.
const SCOPE: &str = "toolyard";

/// The export of an engine's traces and metrics.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    meters: Option<SdkMeterProvider>,
    ends: Arc<Ends>,
    watched: Arc<Watched>,
}

impl Telemetry {
    /// Starts the threads that export. Nothing is sent before there is something to send.
    ///
    /// # Errors
    /// [`SetupError`] where the settings make no sense; a collector that is not there is none.
    pub fn start(settings: Settings) -> Result<Self, SetupError> {
        let resource = settings.resource();
        let traces = export::traces(&settings, resource.clone())?;
        let meters = export::meters(&settings, resource)?;
        let watched = Arc::new(Watched::default());
        let ends = match &meters {
            Some(meters) => {
                let instruments = Instruments::new(meters, &watched);
                Ends::recorded_by(instruments)
            }
            None => Ends::unrecorded(),
        };
        Ok(Self { traces, meters, ends, watched })
    }

    /// The listener for `tracing` that exports the spans of calls, and nothing else: what is logged in them may say
    /// what is not meant for traces.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let layer = tracing_opentelemetry::layer().with_tracer(self.tracer()?);
        let layer =
            layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        Some(layer.with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET)))
    }

    /// What a listener of an embedder's own exports with, who wants other spans beside those of calls; `None` where
    /// traces are not exported.
    pub fn tracer(&self) -> Option<SdkTracer> {
        let scope = InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build();
        self.traces.as_ref().map(|traces| traces.tracer_with_scope(scope))
    }

    /// Counts the ends of calls; for [`EngineBuilder::events`](toolyard::EngineBuilder::events).
    pub fn sink(&self) -> EndsSink {
        EndsSink::new(self.ends.clone(), self.watched.clone())
    }

    /// Has metrics show the permits and breakers of this engine. It is not kept alive by that.
    pub fn observe(&self, engine: &Engine) {
        self.watched.watch(engine.gauges());
    }

    /// Sends what is left, for at most so long; `false` where that was not enough, or something could not be sent. It
    /// blocks; in a runtime it belongs on a thread that may.
    pub fn shutdown(mut self, limit: Duration) -> bool {
        self.ends.close();
        let (traces, meters) = (self.traces.take(), self.meters.take());
        let (tell, told) = mpsc::channel();
        // A thread of its own, for the exporters know limits of their own only. It may outlive this.
        let stopping = thread::Builder::new().name("toolyard-otel-end".to_owned()).spawn(move || {
            let traces =
                thread::spawn(move || traces.is_none_or(|it| it.shutdown_with_timeout(limit).is_ok()));
            let meters = meters.is_none_or(|it| it.shutdown_with_timeout(limit).is_ok());
            let all = traces.join().unwrap_or(false) && meters;
            let _ = tell.send(all); // nobody may wait any more
        });
        stopping.is_ok() && told.recv_timeout(limit).unwrap_or(false)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.ends.close();
    }
}
