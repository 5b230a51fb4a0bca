//! `[mock.TOOL]` (KT-10).

use super::{errors, read, refused};
use crate::stand_ins::latency::Latency;
use std::time::Duration;
use toolyard::{SideEffects, ToolErrorKind};

const MS: Duration = Duration::from_millis(1);

/// KT-10: every key is read; without any, a mock says "ok" at once and has no side effects.
#[test]
fn every_key_is_read() {
    let text = r#"
[mock.plain]
[mock.search]
description = "Searches"
side_effects = "network"
input_schema = { type = "object", properties = { query = { type = "string" } } }
latency = { lognormal = { median = "20ms", sigma = 0.5 } }
failure_rate = 0.25
failure = "rate_limited"
answer = "found {query}"
[mock.read_file]
latency = { uniform = ["10ms", "30ms"] }
answer_json = { path = "{path}", lines = [1, 2] }
[mock.echo]
latency = "5ms"
[tools.search]
max_concurrency = 2
"#;
    let config = read(text).unwrap();
    let [plain, search, file, echo] = config.mocks.as_slice() else { panic!("{:?}", config.mocks) };
    assert_eq!((plain.declared.side_effects, plain.failure_rate), (SideEffects::None, 0.0));
    assert_eq!((plain.latency, plain.failure), (Latency::Fixed(Duration::ZERO), ToolErrorKind::Transient));
    assert_eq!(search.latency, Latency::Lognormal { median: 20 * MS, sigma: 0.5 });
    assert_eq!((search.failure_rate, search.failure), (0.25, ToolErrorKind::RateLimited));
    assert_eq!(search.declared.side_effects, SideEffects::Network);
    assert_eq!(search.answer.arguments(), ["query"]);
    assert_eq!(file.latency, Latency::Uniform(10 * MS, 30 * MS));
    assert_eq!(file.declared, config.authored("read_file").unwrap());
    assert_eq!(echo.latency, Latency::Fixed(5 * MS));
    assert!(config.tools.contains_key("search"));
}

/// KT-10: what cannot be meant is refused, with what to write instead.
#[test]
fn what_cannot_be_meant_is_refused() {
    let m = "[mock.\"t\"]";
    refused("[mock.t]\nlatncy = \"1s\"", 2, &format!("unknown key 'latncy' in {m}; did you mean 'latency'?"));
    refused(
        "[mock.t]\nfailure_rate = 1.5",
        2,
        &format!("{m} failure_rate must be a share from 0 to 1, not 1.5"),
    );
    let pair = "uniform must be two durations, the shorter one first, such as [\"10ms\", \"30ms\"]";
    for given in ["\"10ms\"", "[\"10ms\"]", "[\"2s\", \"1s\"]", "[1, 2]"] {
        let text = format!("[mock.t]\nlatency = {{ uniform = {given} }}");
        refused(&text, 2, &format!("{m} latency {pair}"));
    }
    refused("[mock.t]\nlatency = {}", 2, &format!("{m} latency must be a uniform or a lognormal one"));
    refused("[mock.t]\nlatency = \"2h\"", 2, &format!("{m} latency must be an hour at most"));
    let lognormal = |inner: &str| format!("[mock.t]\nlatency = {{ lognormal = {{ {inner} }} }}");
    let of = format!("{m} latency lognormal");
    let needs = format!("{of} needs a median and a sigma, such as median = \"20ms\", sigma = 0.5");
    refused(&lognormal("sigma = 1"), 2, &needs);
    refused(&lognormal("median = \"1s\", sigma = 9"), 2, &format!("{of} sigma must be from 0 to 3, not 9"));
    let both = "[mock.t]\nanswer = \"a\"\nanswer_json = 1";
    refused(both, 3, &format!("{m} has an answer or an answer_json, not both"));
    refused(
        "[mock.t]\nanswer = \"a }\"",
        2,
        &format!("{m} answer: a '}}' without its other brace: write '}}}}' for the brace itself"),
    );
    refused("[mock.\"a b\"]", 1, "'a b' is not a name for a tool: use letters, digits, '-', '_' and '.'");
    let failures = errors("[mock.t]\nfailure = \"never\"");
    assert!(failures.len() == 1 && failures[0].1.contains("'transient', 'execution', 'rate_limited'"));
}

/// KT-10: a mock of a tool that exists declares nothing, and names only arguments that the tool has.
#[test]
fn a_mock_keeps_the_declaration_of_its_tool() {
    let m = "[mock.\"read_file\"]";
    let why = "there is a tool 'read_file', and of another tool a mock replaces only what runs, not what it declares";
    refused(
        "[mock.read_file]\nside_effects = \"none\"",
        2,
        &format!("{m}side_effects: {why}: remove it").replace("]side", "] side"),
    );
    let unknown = "answer: the tool has no argument 'pth'; did you mean 'path'?";
    refused("[mock.read_file]\nanswer = \"{pth}\"", 2, &format!("{m} {unknown}"));
}
