//! Calls that handlers make: parking, lending, dropping (CC-6, CC-7).

use serde_json::{Value, json};
use std::time::Duration;
use toolyard::{
    Batch, Call, PoolWidths, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
    from_fn,
};
use toolyard_tests::{Log, Yard, call, kinds, shape, yard};

/// A tool that dispatches the batches of its arguments, one after the other, and says how their calls ended.
struct Nests {
    log: Log,
}

/// A call of a nesting tool, which makes these calls in one batch.
pub(crate) fn nest(id: &str, tool: &str, calls: Vec<Call>) -> Call {
    Call::new(id, tool, json!({"calls": calls.iter().map(to_json).collect::<Vec<_>>()}))
}

fn to_json(call: &Call) -> Value {
    json!({"id": call.id.as_str(), "tool": &*call.name, "args": call.arguments.to_value()})
}

pub(crate) fn from_json(calls: &Value) -> Batch {
    let one = |call: &Value| {
        Call::new(call["id"].as_str().unwrap(), call["tool"].as_str().unwrap(), call["args"].clone())
    };
    calls.as_array().unwrap().iter().map(one).collect()
}

#[async_trait]
impl Tool for Nests {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.log.note(format!("{} begins", cx.call_id()));
        let outcomes = cx.dispatch(from_json(&args["calls"])).await;
        self.log.note(format!("{} goes on", cx.call_id()));
        Ok(ToolOutput::text(shape(&outcomes)))
    }
}

pub(crate) fn nesting(spec: ToolSpec, log: &Log) -> impl ToolFactory + use<> {
    let log = log.clone();
    from_fn(spec, move || Nests { log: log.clone() })
}

/// A yard with nesting tools of each class, and pools of width 1.
async fn narrow() -> Yard {
    yard(|builder, log| {
        let mut widths = PoolWidths::default();
        (widths.read, widths.concurrent) = (1.try_into().unwrap(), 1.try_into().unwrap());
        builder
            .pools(widths)
            .max_in_flight(1.try_into().unwrap())
            .tool(nesting(ToolSpec::read("nest_read"), log))
            .tool(nesting(ToolSpec::write("nest_serial"), log))
            .tool(nesting(ToolSpec::write("nest_concurrent").concurrent(), log))
    })
    .await
}

/// CC-6, CC-7: with every pool and cap at 1, a tool of any class calls tools of any class, itself included.
#[tokio::test(start_paused = true)]
async fn tools_of_any_class_call_tools_of_any_class() {
    let yard = narrow().await;
    let session = yard.engine.session("s");
    for outer in ["nest_read", "nest_serial", "nest_concurrent"] {
        for inner in ["nest_read", "nest_serial", "nest_concurrent"] {
            let leaves = || ["read", "serial", "concurrent"].map(|tool| call(tool, tool, 5, "ok")).to_vec();
            let batch = vec![nest("a", outer, vec![nest("b", inner, leaves()), nest("c", inner, leaves())])];
            let outcomes =
                tokio::time::timeout(Duration::from_secs(60), session.dispatch(batch)).await.unwrap();
            assert_eq!(outcomes[0].to_text(), "b ok, c ok", "{outer} calls {inner}");
        }
    }
    assert_eq!(kinds(&session.dispatch(vec![call("last", "serial", 1, "ok")]).await), [None]);
    yard.events.check();
}
