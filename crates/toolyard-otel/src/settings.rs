//! Export settings: the targets, and the service to report as.

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use std::{env, time::Duration};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";

/// The time one request may take; OpenTelemetry's default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the export cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The endpoint does not use plain HTTP.
    #[error(
        "{endpoint}: only http:// is supported; run a collector beside the program to forward over https"
    )]
    NotHttp {
        /// The endpoint.
        endpoint: String,
    },
    /// A variable is not a number of milliseconds.
    #[error("{variable}: '{value}' is not a number of milliseconds")]
    NoTime {
        /// The variable.
        variable: String,
        /// Its value.
        value: String,
    },
    /// The exporter could not be built.
    #[error("cannot set up the export")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// The target of one signal.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) endpoint: String,
    pub(crate) timeout: Duration,
}

/// Where traces and metrics are sent, and the service they are reported as.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    service: Option<String>,
    attributes: Vec<KeyValue>,
}

impl Settings {
    /// Sends both signals to the collector at this address, such as `http://localhost:4318`.
    pub fn to(collector: &str) -> Self {
        let target = |signal| Some(Target { endpoint: signal_url(collector, signal), timeout: TIMEOUT });
        Self { traces: target("traces"), metrics: target("metrics"), service: None, attributes: Vec::new() }
    }

    /// Reads the environment variables of OpenTelemetry. Returns `None` if they name no endpoint, or
    /// `OTEL_SDK_DISABLED` is `true`.
    ///
    /// | variable | |
    /// |---|---|
    /// | `OTEL_EXPORTER_OTLP_ENDPOINT` | the collector, for both signals |
    /// | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT` | the full address for one signal |
    /// | `OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER` | `none` turns the signal off |
    /// | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TRACES_HEADERS`, `…_METRICS_HEADERS` | headers to send |
    /// | `OTEL_EXPORTER_OTLP_TIMEOUT`, `…_TRACES_TIMEOUT`, `…_METRICS_TIMEOUT` | milliseconds for a request |
    /// | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | the service to report as; `service` if they name none |
    /// | `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_BSP_*`, `OTEL_TRACES_SAMPLER` | as OpenTelemetry defines them |
    ///
    /// # Errors
    /// [`SetupError`] names the invalid variable.
    pub fn from_env(service: &str) -> Result<Option<Self>, SetupError> {
        Self::read(service, |variable| env::var(variable).ok())
    }

    fn read(service: &str, read: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SetupError> {
        let read = |variable: &str| read(variable).filter(|value| !value.is_empty());
        if read("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let endpoint = |own: &str, signal: &str| {
            let off =
                read(&format!("OTEL_{}_EXPORTER", signal.to_uppercase())).is_some_and(|it| it == "none");
            let endpoint = read(own).or_else(|| Some(signal_url(&read(ENDPOINT)?, signal)));
            endpoint.filter(|_| !off)
        };
        let target = |own: &str, signal: &str| -> Result<_, SetupError> {
            let Some(endpoint) = endpoint(own, signal) else { return Ok(None) };
            let own = format!("OTEL_EXPORTER_OTLP_{}_TIMEOUT", signal.to_uppercase());
            let timeout = [own.as_str(), "OTEL_EXPORTER_OTLP_TIMEOUT"];
            let timeout = timeout.iter().find_map(|variable| Some((*variable, read(variable)?)));
            let timeout = timeout.map_or(Ok(TIMEOUT), |(variable, value)| millis(variable, value))?;
            Ok(Some(Target { endpoint, timeout }))
        };
        let (traces, metrics) = (target(TRACES_ENDPOINT, "traces")?, target(METRICS_ENDPOINT, "metrics")?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let named = read("OTEL_SERVICE_NAME").is_some()
            || read("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        let service = (!named).then(|| service.to_owned());
        Ok(Some(Self { traces, metrics, service, attributes: Vec::new() }))
    }

    /// Sets the name of the service, overriding the environment.
    #[must_use]
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service = Some(name.into());
        self
    }

    /// Adds an attribute of the service, such as its instance.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push(KeyValue::new(key.into(), value.into()));
        self
    }

    /// Sets how long one request may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.traces.iter_mut().chain(&mut self.metrics).for_each(|target| target.timeout = timeout);
        self
    }

    pub(crate) fn resource(&self) -> Resource {
        let resource = Resource::builder().with_attributes(self.attributes.iter().cloned());
        match &self.service {
            Some(name) => resource.with_service_name(name.clone()).build(),
            None => resource.build(),
        }
    }
}

/// The address for one signal at a collector.
fn signal_url(collector: &str, signal: &str) -> String {
    format!("{}/v1/{signal}", collector.trim_end_matches('/'))
}

fn millis(variable: &str, value: String) -> Result<Duration, SetupError> {
    match value.trim().parse() {
        Ok(millis) => Ok(Duration::from_millis(millis)),
        Err(_) => Err(SetupError::NoTime { variable: variable.to_owned(), value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SetupError> {
        let find =
            |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        Settings::read("toolyard", find)
    }

    fn endpoints(variables: &[(&str, &str)]) -> Option<(Option<String>, Option<String>)> {
        let settings = read(variables).unwrap()?;
        Some((settings.traces.map(|it| it.endpoint), settings.metrics.map(|it| it.endpoint)))
    }

    /// OB-4: without an endpoint nothing is exported; with one, every signal that is not switched off.
    #[test]
    fn endpoints_as_opentelemetry_has_them() {
        let both = |traces: &str, metrics: &str| Some((Some(traces.to_owned()), Some(metrics.to_owned())));
        assert_eq!(endpoints(&[]), None);
        assert_eq!(endpoints(&[(ENDPOINT, "")]), None);
        assert_eq!(endpoints(&[(ENDPOINT, "http://c"), ("OTEL_SDK_DISABLED", "true")]), None);
        assert_eq!(
            endpoints(&[(ENDPOINT, "http://c:1/")]),
            both("http://c:1/v1/traces", "http://c:1/v1/metrics")
        );
        assert_eq!(
            endpoints(&[(ENDPOINT, "http://c"), (TRACES_ENDPOINT, "http://t/x")]),
            both("http://t/x", "http://c/v1/metrics")
        );
        let one = [(METRICS_ENDPOINT, "http://m/x")];
        assert_eq!(endpoints(&one), Some((None, Some("http://m/x".to_owned()))));
        let off = [(ENDPOINT, "http://c"), ("OTEL_METRICS_EXPORTER", "none")];
        assert_eq!(endpoints(&off), Some((Some("http://c/v1/traces".to_owned()), None)));
    }

    /// OB-4: an invalid timeout is reported with its variable.
    #[test]
    fn times_that_are_none() {
        let variables = [(ENDPOINT, "http://c"), ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "soon")];
        let error = read(&variables).unwrap_err().to_string();
        assert_eq!(error, "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: 'soon' is not a number of milliseconds");
    }

    /// OB-4: the service name comes from the environment if set there, otherwise from the program.
    #[test]
    fn whose_name() {
        let name = |variables: &[_]| read(variables).unwrap().unwrap().service;
        assert_eq!(name(&[(ENDPOINT, "http://c")]).as_deref(), Some("toolyard"));
        assert_eq!(name(&[(ENDPOINT, "http://c"), ("OTEL_SERVICE_NAME", "mine")]), None);
    }
}
