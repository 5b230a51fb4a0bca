//! What shows that a batch whose calls come one by one is the same as one that comes whole (CL-5).

use crate::nested::nest;
use toolyard::{Call, Outcome};
use toolyard_tests::call;

/// Calls of every class that run, fail, nest, or are refused; two have the same id.
pub(crate) fn of_every_kind() -> Vec<Call> {
    let tools = ["read", "read", "nothing", "read", "serial", "serial", "concurrent", "concurrent", "read"];
    let mut calls: Vec<_> =
        tools.iter().enumerate().map(|(n, tool)| call(&format!("c{n}"), tool, 5, "ok")).collect();
    calls.push(call("c1", "read", 0, "ok"));
    calls.push(Call::new("broken", "read", r#"{"ms": 5, "en"#));
    calls.push(call("fails", "serial", 0, "fail"));
    calls.push(nest("deep", "nests", vec![call("in", "serial", 1, "ok")]));
    calls
}

/// What of the results does not depend on when the calls came.
pub(crate) fn steady(outcomes: &[Outcome]) -> Vec<String> {
    let line = |one: &Outcome| format!("{} run {} {} {}", one.call_id, one.run, one.routing, one.to_text());
    outcomes.iter().map(line).collect()
}
