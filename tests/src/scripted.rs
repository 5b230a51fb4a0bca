//! Tools that do what their arguments say.

use crate::{Log, Recorder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{future::pending, sync::Arc, time::Duration};
use toolyard::{
    Answer, Call, Engine, EngineBuilder, ErrorKind, Outcome, Tool, ToolContext, ToolError, ToolFactory,
    ToolOutput, ToolSpec, async_trait, from_fn,
};

/// The arguments of a tool that takes a number.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Number {
    /// The number.
    pub n: u64,
}

/// A tool that follows its arguments.
///
/// `ms` is how long it takes, `end` how it ends: `ok` (the default), `fail`, `no` (`success: false`), `transient`,
/// `harmless` (transient, nothing changed), `limited` (a remote 429), `panic`, `hang`, `polite` (hangs until
/// cancelled), `stops_late` (the same, 20 ms later), `finishes` (hangs until cancelled, then succeeds), `deaf` (never
/// stops), `unclassified` (an I/O error), `delta` (emits a part first), `big` (a large output). A list `ends` replaces
/// `end` with one entry per attempt; the last entry also serves all further attempts. `hint_ms` sets the retry-after
/// hint of an error.
struct Scripted {
    log: Log,
}

#[async_trait]
impl Tool for Scripted {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let _running = self.log.start(cx.call_id().as_str());
        if let Some(ms) = args["ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        let attempt = cx.attempt() as usize - 1;
        let ends = args["ends"].as_array().map(|ends| &ends[attempt.min(ends.len() - 1)]);
        let hint = args["hint_ms"].as_u64().map(Duration::from_millis);
        let hinted = |error: ToolError| hint.into_iter().fold(error, ToolError::retry_after);
        match ends.unwrap_or(&args["end"]).as_str().unwrap_or("ok") {
            "fail" => Err(ToolError::execution("HTTP 404: no such thing")),
            "no" => Ok(ToolOutput::failure("the tool says no")),
            "transient" => Err(hinted(ToolError::transient("HTTP 500: connection refused"))),
            "harmless" => Err(hinted(ToolError::transient("connect: timed out").no_side_effect())),
            "limited" => Err(ToolError::rate_limited("HTTP 429", hint)),
            "unclassified" => Err(std::io::Error::other("secret path /home/me").into()),
            "panic" => panic!("scripted panic"),
            "hang" | "deaf" => pending().await,
            "polite" => {
                cx.cancelled().await;
                Err(ToolError::cancelled("stopped"))
            }
            "stops_late" => {
                cx.cancelled().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(ToolError::cancelled("stopped late"))
            }
            "finishes" => {
                cx.cancelled().await;
                Ok("finished all the same".into())
            }
            "delta" => {
                cx.emit("half");
                Ok("whole".into())
            }
            "big" => Ok(ToolOutput::text("x".repeat(17 * 1024 * 1024))),
            _ => Ok(ToolOutput::text(cx.call_id().to_string())),
        }
    }
}

/// A scripted tool with this spec.
pub fn scripted(spec: ToolSpec, log: &Log) -> impl ToolFactory + use<> {
    let log = log.clone();
    from_fn(spec, move || Scripted { log: log.clone() })
}

/// An engine with scripted tools, with a log of their handlers and a recorder of its events.
#[derive(Debug)]
pub struct Yard {
    /// The engine.
    pub engine: Engine,
    /// What the handlers did.
    pub log: Log,
    /// Every event of the engine.
    pub events: Recorder,
}

/// An engine with the scripted tools `read`, `serial` and `concurrent` that answers every question with yes, as
/// modified by `change`.
///
/// # Panics
/// If the engine cannot be built.
pub async fn yard(change: impl FnOnce(EngineBuilder, &Log) -> EngineBuilder) -> Yard {
    let (log, events) = (Log::new(), Recorder::default());
    let builder = Engine::builder()
        .tool(scripted(ToolSpec::read("read"), &log))
        .tool(scripted(ToolSpec::write("serial"), &log))
        .tool(scripted(ToolSpec::write("concurrent").concurrent(), &log))
        .confirmations(toolyard::Confirmations::auto())
        .approver(Answer::allow("ada"))
        .events(events.clone());
    let engine = change(builder, &log).build().await.expect("invalid engine configuration");
    Yard { engine, log, events }
}

/// A call of a scripted tool.
pub fn call(id: &str, tool: &str, ms: u64, end: &str) -> Call {
    Call::new(id, tool, json!({"ms": ms, "end": end}))
}

/// A call of a scripted tool whose attempts end as listed, one after another.
pub fn tries(id: &str, tool: &str, ms: u64, ends: &[&str]) -> Call {
    Call::new(id, tool, json!({"ms": ms, "ends": ends}))
}

/// The call with this idempotency key.
#[must_use]
pub fn keyed(key: &str, mut call: Call) -> Call {
    call.idempotency_key = Some(key.into());
    call
}

/// The error kinds of outcomes; `None` for a success.
pub fn kinds(outcomes: &[Outcome]) -> Vec<Option<ErrorKind>> {
    outcomes.iter().map(|outcome| outcome.error().map(|error| error.kind)).collect()
}

/// Ids and codes in one line, such as `a ok, b not_found`.
pub fn shape(outcomes: &[Outcome]) -> String {
    let one = |outcome: &Outcome| {
        let code: Arc<str> = outcome.error().map_or("ok", |error| error.kind.code()).into();
        format!("{} {code}", outcome.call_id)
    };
    outcomes.iter().map(one).collect::<Vec<_>>().join(", ")
}
