//! The export as a collector sees it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "../../toolyard-otel/tests/otlp/receiver.rs"]
mod receiver;
mod shared;

use receiver::{Receiver, attributes};
use serde_json::{Value, json};
use shared::{
    child::{Done, fed, program},
    place::dir,
    service::{answer, service},
    workspace::workspace,
};
use std::{fs, process::Output};

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

/// Runs one call of a service that is busy at first, with these variables, and gives the requests that it got.
fn call(name: &str, variables: &[(&str, &str)]) -> (Done, Vec<(String, Value)>) {
    let answers =
        [answer("503 Service Unavailable", "retry-after: 0\r\n", "busy"), answer("200 OK", "", "done")];
    let (url, served) = service(answers.into());
    let file = dir(&format!("export-{name}")).join("toolyard.toml");
    let tool = format!(
        "[retry]\nbase = \"1ms\"\ncap = \"2ms\"\n[tools.t]\nidempotent = true\n[program.t]\ndescription = \"A service\"\n\
         url = \"{url}\"\nallow_private = true\n"
    );
    fs::write(&file, tool).unwrap();
    let mut program =
        program(&["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()]);
    program.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT").envs(variables.iter().copied());
    let calls = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {}}]}).to_string();
    (fed(program, &calls), served.join().unwrap())
}

/// The trace, the span and the flags that a request says it belongs to.
fn traced(head: &str) -> Option<(String, String, String)> {
    let value = head.lines().find_map(|line| line.strip_prefix("traceparent: "))?;
    let [version, trace, span, flags] = value.split('-').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((version, trace.len(), span.len()), ("00", 32, 16), "{value}");
    Some((trace.to_owned(), span.to_owned(), flags.to_owned()))
}

/// SB-2, OB-4: each request to a service names the exported span of its call.
#[test]
fn a_service_is_told_the_trace_of_its_call() {
    let receiver = Receiver::start();
    let (done, requests) = call("traced", &[("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address())]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [span] = receiver.spans().try_into().unwrap();
    let expected = (hex(&span.trace_id), hex(&span.span_id), "01".to_owned());
    assert_eq!(requests.len(), 2);
    for (head, _) in requests {
        assert_eq!(traced(&head).as_ref(), Some(&expected), "{head}");
    }
}

/// SB-2, OB-4: a trace that is not sampled is named as such; where no traces are exported a request names none.
#[test]
fn a_service_is_told_of_no_other_trace() {
    let receiver = Receiver::start();
    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address());
    let (_, requests) = call("unsampled", &[collector, ("OTEL_TRACES_SAMPLER", "always_off")]);
    assert!(requests.iter().all(|(head, _)| traced(head).unwrap().2 == "00"), "{requests:?}");
    for (name, variables) in
        [("untraced", &[collector, ("OTEL_TRACES_EXPORTER", "none")][..]), ("unexported", &[])]
    {
        let (_, requests) = call(name, variables);
        assert!(requests.iter().all(|(head, _)| traced(head).is_none()), "{name}: {requests:?}");
    }
    assert!(receiver.spans().is_empty());
}
