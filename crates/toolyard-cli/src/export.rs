//! The export of traces and metrics, if the program is built with it and the environment names a collector.

#[cfg(feature = "otel")]
pub(crate) use on::Export;

#[cfg(not(feature = "otel"))]
pub(crate) use off::Export;

#[cfg(feature = "otel")]
mod on {
    use std::time::Duration;
    use toolyard::{Engine, EngineBuilder};
    use toolyard_otel::{Settings, Telemetry};

    /// The service name, unless the environment sets one.
    const SERVICE: &str = "toolyard";

    /// How long the program waits for the collector at its end.
    const EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

    /// The exporter, if the environment names a collector.
    pub(crate) struct Export(Option<Telemetry>);

    impl Export {
        /// Starts exporting. Invalid settings are reported and disable the export, but do not stop the run.
        pub(crate) fn start() -> Self {
            let started = Settings::from_env(SERVICE)
                .and_then(|settings| settings.map(Telemetry::start).transpose())
                .inspect_err(|why| anstream::eprintln!("toolyard: cannot export traces and metrics: {why}"));
            Self(started.ok().flatten())
        }

        /// For a command that exports nothing.
        pub(crate) fn none() -> Self {
            Self(None)
        }

        /// The telemetry that the log's subscriber needs.
        pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
            self.0.as_ref()
        }

        /// Counts the engine's events.
        pub(crate) fn count(&self, builder: EngineBuilder) -> EngineBuilder {
            match &self.0 {
                Some(telemetry) => builder.events(telemetry.sink()),
                None => builder,
            }
        }

        /// Reports the engine's current state.
        pub(crate) fn observe(&self, engine: &Engine) {
            if let Some(telemetry) = &self.0 {
                telemetry.observe(engine);
            }
        }

        /// Sends the remaining data.
        pub(crate) fn finish(self) {
            if self.0.is_some_and(|telemetry| !telemetry.shutdown(EXPORT_TIMEOUT)) {
                anstream::eprintln!("toolyard: some traces or metrics could not be sent");
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
mod off {
    use toolyard::{Engine, EngineBuilder};

    /// Exports nothing: the program is built without the feature.
    pub(crate) struct Export;

    #[allow(clippy::unused_self, reason = "same interface as with the feature")]
    impl Export {
        pub(crate) fn start() -> Self {
            Self
        }

        pub(crate) fn none() -> Self {
            Self
        }

        pub(crate) fn count(&self, builder: EngineBuilder) -> EngineBuilder {
            builder
        }

        pub(crate) fn observe(&self, _: &Engine) {}

        pub(crate) fn finish(self) {}
    }
}
