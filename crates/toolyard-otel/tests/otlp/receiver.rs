//! A collector that takes OTLP over HTTP on a port of its own and keeps what it receives.

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{Metric, ResourceMetrics},
    trace::v1::{ResourceSpans, Span},
};
use prost::Message;
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// The received data.
#[derive(Debug, Default)]
struct Kept {
    traces: Vec<ResourceSpans>,
    metrics: Vec<ResourceMetrics>,
}

/// A collector that listens for the lifetime of the test process.
pub(crate) struct Receiver {
    address: String,
    kept: Arc<Mutex<Kept>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept::default()));
        let keeps = kept.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keeps = keeps.clone();
                thread::spawn(move || while serve(&stream, &keeps).is_some() {});
            }
        });
        Self { address, kept }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn resources(&self) -> Vec<BTreeMap<String, String>> {
        let kept = self.kept.lock().unwrap();
        let traces = kept.traces.iter().map(|it| it.resource.as_ref());
        let metrics = kept.metrics.iter().map(|it| it.resource.as_ref());
        traces.chain(metrics).map(|resource| attributes(&resource.unwrap().attributes)).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let kept = self.kept.lock().unwrap();
        let scopes = kept.traces.iter().flat_map(|it| &it.scope_spans);
        scopes
            .inspect(|it| assert_eq!(it.scope.as_ref().unwrap().name, "toolyard"))
            .flat_map(|it| it.spans.clone())
            .collect()
    }

    /// The metrics of the last request.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        let kept = self.kept.lock().unwrap();
        let scopes = kept.metrics.last().unwrap().scope_metrics.iter();
        scopes.flat_map(|it| it.metrics.clone()).map(|it| (it.name.clone(), it)).collect()
    }
}

/// Reads one request and answers it; `None` when the client is done.
fn serve(mut stream: &TcpStream, kept: &Mutex<Kept>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_lowercase()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("the length is told").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    {
        let mut kept = kept.lock().unwrap();
        assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
        match head[0].as_str() {
            "post /v1/traces http/1.1" => {
                kept.traces.extend(ExportTraceServiceRequest::decode(&*body).unwrap().resource_spans);
            }
            "post /v1/metrics http/1.1" => {
                kept.metrics.extend(ExportMetricsServiceRequest::decode(&*body).unwrap().resource_metrics);
            }
            other => panic!("asked for {other}"),
        }
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")
        .ok()
}

/// Attributes as text, by key.
pub(crate) fn attributes(of: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => format!("{number:?}"),
        Value::BoolValue(is) => is.to_string(),
        other => format!("{other:?}"),
    };
    let value = |pair: &KeyValue| text(pair.value.as_ref().unwrap().value.as_ref().unwrap());
    of.iter().map(|pair| (pair.key.clone(), value(pair))).collect()
}
