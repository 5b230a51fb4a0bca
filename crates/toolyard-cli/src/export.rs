//! The export of traces and metrics, where the program is built with it and the environment names a collector.

#[cfg(feature = "otel")]
pub(crate) use on::Export;

#[cfg(not(feature = "otel"))]
pub(crate) use off::Export;

#[cfg(feature = "otel")]
mod on {
    use std::time::Duration;
    use toolyard::{Engine, EngineBuilder};
    use toolyard_otel::{Settings, Telemetry};

    /// In whose name, where the environment does not say.
    const SERVICE: &str = "toolyard";

    /// How long the end of the program waits for a collector.
    const LAST_WORDS: Duration = Duration::from_secs(2);

    /// What exports, if anything does.
    pub(crate) struct Export(Option<Telemetry>);

    impl Export {
        /// Starts it. Settings that make no sense are told of, and cost the export and not the run.
        pub(crate) fn start() -> Self {
            let started = Settings::from_env(SERVICE)
                .and_then(|settings| settings.map(Telemetry::start).transpose())
                .inspect_err(|why| anstream::eprintln!("toolyard: no traces and metrics: {why}"));
            Self(started.ok().flatten())
        }

        /// That of a command that exports nothing.
        pub(crate) fn none() -> Self {
            Self(None)
        }

        /// What it has to listen with, for the log.
        pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
            self.0.as_ref()
        }

        /// Has it count what the engine will do.
        pub(crate) fn count(&self, builder: EngineBuilder) -> EngineBuilder {
            match &self.0 {
                Some(telemetry) => builder.events(telemetry.sink()),
                None => builder,
            }
        }

        /// Has it show how the engine stands.
        pub(crate) fn observe(&self, engine: &Engine) {
            if let Some(telemetry) = &self.0 {
                telemetry.observe(engine);
            }
        }

        /// Sends what is left.
        pub(crate) fn finish(self) {
            if self.0.is_some_and(|telemetry| !telemetry.shutdown(LAST_WORDS)) {
                anstream::eprintln!("toolyard: some traces or metrics could not be sent");
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
mod off {
    use toolyard::{Engine, EngineBuilder};

    /// Nothing exports: the program is built without it.
    pub(crate) struct Export;

    #[allow(clippy::unused_self, reason = "the same words as where something exports")]
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
