//! The program as a collector sees it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "../../toolyard-otel/tests/otlp/receiver.rs"]
mod receiver;

use receiver::{Receiver, attributes};
use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

/// Runs a sample response against a collector at this address.
fn run(collector: Option<&str>) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut program = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    program.current_dir(root).env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    program.args(["run", "examples/responses/openai-chat.json", "--workspace", "examples/workspace"]);
    program.args(["--approve", "auto", "--report", "none"]);
    if let Some(collector) = collector {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    }
    program.output().unwrap()
}

/// OB-4: where the environment names a collector a run sends it a span for each call, and its metrics, before the
/// program ends.
#[test]
fn a_run_is_exported() {
    let receiver = Receiver::start();
    let output = run(Some(receiver.address()));
    let without = run(None);
    assert_eq!((&output.stdout, output.status.code()), (&without.stdout, without.status.code()));
    let calls = receiver.spans().len();
    assert!(calls > 0);
    for span in receiver.spans() {
        let of = attributes(&span.attributes);
        assert_eq!(span.name, format!("execute_tool {}", of["gen_ai.tool.name"]));
        assert!(!of.contains_key("gen_ai.tool.call.arguments"));
    }
    let metrics = receiver.metrics();
    assert!(metrics.contains_key("gen_ai.execute_tool.duration"), "{:?}", metrics.keys());
    assert!(metrics.contains_key("dispatch.permits.in_use"), "{:?}", metrics.keys());
    assert!(receiver.resources().iter().all(|of| of["service.name"] == "toolyard"));
}

/// OB-4: a collector that is away changes neither results nor exit code, and is told of.
#[test]
fn a_collector_that_is_away() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (output, without) = (run(Some(&format!("http://{nobody}"))), run(None));
    assert_eq!((&output.stdout, output.status.code()), (&without.stdout, without.status.code()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("some traces or metrics could not be sent"), "{said}");
}

/// OB-4: so does one that this cannot speak to.
#[test]
fn a_collector_behind_tls() {
    let output = run(Some("https://127.0.0.1:1"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("no traces and metrics: https://127.0.0.1:1/v1/traces: only http:// is spoken"),
        "{said}"
    );
    assert!(!output.stdout.is_empty());
}
