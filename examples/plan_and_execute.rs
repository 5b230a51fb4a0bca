//! A loop that plans and executes. The error of a failed call says how to go on. `ErrorKind::reaction()` has three
//! answers: replan, because the same call would fail again; retry it later; or stop.
//!
//! ```text
//!   plan ─► next step ─► engine ─┬─ ok ───────────────────────────► next step
//!     ▲                          ├─ replan: the planner is told ──┐
//!     ├──────────────────────────┼────────────────────────────────┘
//!     └───── after a wait ───────┼─ retry later
//!                                └─ stop ──────────────────────────► report with what there is
//! ```
//!
//! The output shows: no train runs, so the planner takes the bus; it writes an invalid date and is corrected; the
//! hotel's server asks for patience and gets it; and when the budget of nine calls is spent, the trip is reported as
//! far as it is planned.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use toolyard::{
    Budget, Budgets, Call, CallError, Drain, Engine, EngineBuilder, ErrorKind, Reaction, Session,
    ToolContext, ToolError, ToolSpec, tool_fn,
};

/// How often one step may be postponed.
const PATIENCE: u32 = 3;

/// How long to wait if the error does not say.
const A_WHILE: Duration = Duration::from_millis(200);

/// One step of a plan.
#[derive(Clone)]
struct Step {
    tool: &'static str,
    about: &'static str,
    put_off: u32,
}

fn step(tool: &'static str, about: &'static str) -> Step {
    Step { tool, about, put_off: 0 }
}

/// Stands in for a model that plans a trip.
struct Planner;

impl Planner {
    fn plan(&self) -> VecDeque<Step> {
        let sights = ["the fjord", "the market", "the museum", "the tower", "the harbour"];
        let first = [step("train", "Bergen"), step("weather", "tomorow"), step("hotel", "Bergen")];
        first.into_iter().chain(sights.map(|sight| step("sight", sight))).collect()
    }

    /// The step to take in place of a failed one, if the planner knows any.
    fn replan(&self, failed: &Step, error: &CallError) -> Option<Step> {
        match (failed.tool, error.kind) {
            ("train", _) => Some(step("bus", failed.about)),
            ("weather", ErrorKind::InvalidInput) => Some(step("weather", "tomorrow")),
            _ => None,
        }
    }
}

// The arguments of every tool here.
#[derive(Deserialize, JsonSchema)]
struct About {
    about: String,
}

fn tools(engine: EngineBuilder) -> EngineBuilder {
    let asked = AtomicBool::new(false);
    engine
        .tool(tool_fn(ToolSpec::read("train"), |about: About, _: ToolContext| async move {
            Err::<(), _>(ToolError::execution(format!("no train goes to {} on a Sunday", about.about)))
        }))
        .tool(tool_fn(ToolSpec::read("bus"), |about: About, _: ToolContext| async move {
            Ok(format!("bus to {} at 9:40", about.about))
        }))
        .tool(tool_fn(ToolSpec::read("weather"), |about: About, _: ToolContext| async move {
            match about.about.as_str() {
                "tomorrow" => Ok("rain"),
                other => Err(ToolError::invalid_input(format!("'{other}' is not a day"))),
            }
        }))
        .tool(tool_fn(ToolSpec::read("hotel"), move |about: About, _: ToolContext| {
            let busy = !asked.swap(true, Ordering::SeqCst);
            async move {
                // Longer than the engine itself would wait, so the planner has to.
                let wait = Duration::from_secs(45);
                if busy {
                    Err(ToolError::rate_limited("HTTP 429", Some(wait)))
                } else {
                    Ok(format!("a room in {}", about.about))
                }
            }
        }))
        .tool(tool_fn(ToolSpec::read("sight"), |about: About, _: ToolContext| async move {
            Ok(format!("{} is open", about.about))
        }))
}

/// Executes the plan, step by step; returns the findings.
async fn execute(session: &Session, planner: &Planner) -> Vec<String> {
    let (mut plan, mut found, mut number) = (planner.plan(), Vec::new(), 0);
    while let Some(mut step) = plan.pop_front() {
        number += 1;
        let call = Call::new(format!("step_{number}"), step.tool, json!({"about": step.about}));
        let outcome = session.call(call).await;
        print!("{:<8} {:<8} {:<12} ", outcome.call_id.as_str(), step.tool, step.about);
        let Some(error) = outcome.error() else {
            println!("ok: {}", outcome.to_text());
            found.push(outcome.to_text());
            continue;
        };
        print!("{}: {} ─► ", error.kind, error.message);
        match error.reaction() {
            Reaction::RetryLater if step.put_off < PATIENCE => {
                let wait = error.retry_after.unwrap_or(A_WHILE);
                println!("again in {wait:?}");
                step.put_off += 1;
                tokio::time::sleep(wait).await;
                plan.push_front(step);
            }
            Reaction::RetryLater | Reaction::Replan => match planner.replan(&step, error) {
                Some(other) => {
                    println!("replanned: {} '{}'", other.tool, other.about);
                    plan.push_front(other);
                }
                None => println!("left out"),
            },
            Reaction::Stop => {
                println!("stopped with {} steps to go", plan.len() + 1);
                break;
            }
        }
    }
    found
}

// The clock is paused and jumps over waits, so the example ends at once.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = tools(Engine::builder());
    let engine = engine.budgets(Budgets::default().session(Budget::calls(9))).build().await?;
    let found = execute(&engine.session("trip"), &Planner).await;
    println!("the trip: {}", found.join(", "));
    engine.shutdown(Drain::default()).await;
    Ok(())
}
