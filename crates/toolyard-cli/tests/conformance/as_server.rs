//! Server mode: the suite is the gateway's client.

use crate::{
    gateway::{Gateway, configured},
    judges,
    table::{Results, compare, expected},
};

/// The result of each scenario, read from the summary: `✓ ping: 1 passed, 0 failed`.
fn results(output: &str) -> Results {
    let (_, summary) = output.split_once("=== SUMMARY ===").unwrap_or_else(|| panic!("no summary: {output}"));
    let result = |line: &str| {
        let (mark, scenario) = line.split_once(' ')?;
        let (scenario, _) = scenario.split_once(": ")?;
        matches!(mark, "✓" | "✗").then(|| (scenario.to_owned(), mark == "✓"))
    };
    summary.lines().filter_map(result).collect()
}

fn the_gateway_is_judged(suite: &str, version: &str) {
    let Some(judges) = judges::place() else { return };
    let config = configured(&judges, suite, &format!("conformance-{suite}"));
    let gateway = Gateway::open(&config);
    let notes = config.with_file_name("notes");
    let (_, output) = judges.judge(suite, &["server", "--suite", "all", "--url", &gateway.url], &notes);
    compare(&expected("The gateway", version), &results(&output), &output);
}

/// V4, V5, PO-4, SC-4: every scenario about tools passes, and so do those of the transport and the lifecycle.
#[test]
fn the_gateway_is_judged_by_the_release() {
    the_gateway_is_judged("suite", "0.1.16");
}

/// The same with the preview of the next release, which has scenarios of later protocols too.
#[test]
fn the_gateway_is_judged_by_the_preview() {
    the_gateway_is_judged("suite-next", "0.2.0-alpha.12");
}
