//! Builds the exporters from the settings.

use crate::{
    client::Client,
    settings::{Settings, SetupError, Target},
};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider, trace::SdkTracerProvider};

/// The provider that exports spans in batches from a thread of its own; `None` if traces are not exported.
pub(crate) fn traces(
    settings: &Settings,
    resource: Resource,
) -> Result<Option<SdkTracerProvider>, SetupError> {
    let Some(target) = &settings.traces else { return Ok(None) };
    let exporter = SpanExporter::builder().with_http().with_http_client(client(target)?);
    let exporter = exporter.with_endpoint(&target.endpoint).with_timeout(target.timeout).build()?;
    Ok(Some(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build()))
}

/// The provider that exports metrics periodically from a thread of its own; `None` if metrics are not exported.
pub(crate) fn meters(
    settings: &Settings,
    resource: Resource,
) -> Result<Option<SdkMeterProvider>, SetupError> {
    let Some(target) = &settings.metrics else { return Ok(None) };
    let exporter = MetricExporter::builder().with_http().with_http_client(client(target)?);
    let exporter = exporter.with_endpoint(&target.endpoint).with_timeout(target.timeout).build()?;
    Ok(Some(SdkMeterProvider::builder().with_resource(resource).with_periodic_exporter(exporter).build()))
}

fn client(target: &Target) -> Result<Client, SetupError> {
    match target.endpoint.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) {
        true => Ok(Client::new(target.timeout)),
        false => Err(SetupError::NotHttp { endpoint: target.endpoint.clone() }),
    }
}
