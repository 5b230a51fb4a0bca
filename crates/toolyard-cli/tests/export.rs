//! The export as a collector sees it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "../../toolyard-otel/tests/otlp/receiver.rs"]
mod receiver;
mod shared;

use receiver::{Receiver, attributes};
use shared::{child::program, workspace::workspace};
use std::process::Output;

/// An address where nobody listens. Systems never assign port 1, whereas a port that was just free may be taken again.
const NOBODY: &str = "127.0.0.1:1";

/// Runs a sample response in a workspace of this name, with this collector.
fn run(name: &str, collector: Option<&str>) -> Output {
    let workspace = workspace(&format!("export-{name}"));
    let args = ["run", "examples/responses/openai-chat.json", "--approve", "auto", "--report", "none"];
    let mut program = program(&args);
    program.arg("--workspace").arg(workspace).env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    if let Some(collector) = collector {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    }
    program.output().unwrap()
}

/// Asserts the same results and exit code.
fn same(one: &Output, other: &Output) {
    let results = |of: &Output| (of.status.code(), String::from_utf8(of.stdout.clone()).unwrap());
    assert_eq!(results(one), results(other));
}

/// OB-4: if the environment names a collector, a run sends it a span per call and its metrics before the program ends.
#[test]
fn a_run_is_exported() {
    let receiver = Receiver::start();
    let output = run("there", Some(receiver.address()));
    let without = run("there-without", None);
    same(&output, &without);
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

/// OB-4: a collector that cannot be reached changes neither results nor exit code, and is reported.
#[test]
fn a_collector_that_is_away() {
    let output = run("away", Some(&format!("http://{NOBODY}")));
    let without = run("away-without", None);
    same(&output, &without);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("some traces or metrics could not be sent"), "{stderr}");
}

/// OB-4: the same holds for a collector whose protocol is not supported.
#[test]
fn a_collector_behind_tls() {
    let output = run("tls", Some(&format!("https://{NOBODY}")));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains(&format!(
            "cannot export traces and metrics: https://{NOBODY}/v1/traces: only http:// is supported"
        )),
        "{stderr}"
    );
    assert!(!output.stdout.is_empty());
}
