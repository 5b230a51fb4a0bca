//! Forty calls that read, write and fetch, 2 to 20 ms each: measured by runs and one by one, and compared with the
//! least time that the order of the runs and the widths of the pools allow.

use crate::median;
use serde_json::{Value, json};
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard::{
    Batch, Call, Drain, Engine, Outcome, PoolWidths, Routing, Session, Tool, ToolContext, ToolError,
    ToolOutput, ToolSpec, async_trait, from_fn,
};

/// The pattern that a batch repeats: a model that looks, acts and looks again.
const PATTERN: [&str; 10] =
    ["read", "read", "read", "read", "read", "fetch", "fetch", "fetch", "write", "read"];
const CALLS: usize = 40;

pub(crate) fn measure(rounds: usize) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(runtime.spawn(measured(rounds))).map_err(|error| error.to_string())?
}

async fn measured(rounds: usize) -> Result<(), String> {
    let sleeps = |spec: ToolSpec| from_fn(spec, || Sleeps);
    let builder =
        Engine::builder().tool(sleeps(ToolSpec::read("read"))).tool(sleeps(ToolSpec::write("write")));
    let builder = builder.tool(sleeps(ToolSpec::network("fetch").concurrent()));
    let engine = toolyard_bench::engine(builder).await?;
    let session = engine.session("mixed");
    let (mut by_runs, mut one_by_one) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        by_runs.push(timed(&session, false).await);
        one_by_one.push(timed(&session, true).await);
    }
    let (by_runs, one_by_one, ideal) = (median(by_runs), median(one_by_one), ideal(&session));
    println!("{CALLS} calls of 2 to 20 ms, in {} runs", session.plan(&batch()).runs.len());
    println!("  by runs             {by_runs:>8.1} ms");
    println!("  one by one          {one_by_one:>8.1} ms  {:>6.2} times as long", one_by_one / by_runs);
    println!("  the ideal of runs   {ideal:>8.1} ms  {:>6.1} % less", (1.0 - ideal / by_runs) * 100.0);
    engine.shutdown(Drain::default()).await;
    Ok(())
}

fn batch() -> Batch {
    let tools = PATTERN.iter().cycle().take(CALLS).enumerate();
    tools.map(|(n, tool)| Call::new(format!("call_{n}"), *tool, json!({"ms": ms(n)}))).collect()
}

/// Returns the duration of the call at this index: 2 to 20 ms, spread by a stride that is coprime to the span.
fn ms(n: usize) -> u64 {
    2 + (n as u64 * 7) % 19
}

struct Sleeps;

#[async_trait]
impl Tool for Sleeps {
    async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or_default())).await;
        Ok(ToolOutput::text(String::new()))
    }
}

/// Returns the milliseconds that a batch takes.
async fn timed(session: &Session, sequential: bool) -> f64 {
    let batch = batch();
    let started_at = Instant::now();
    let outcomes =
        if sequential { session.dispatch_sequential(batch).await } else { session.dispatch(batch).await };
    let took = started_at.elapsed();
    assert!(outcomes.iter().all(Outcome::success));
    took.as_secs_f64() * 1e3
}

/// Returns the milliseconds that the runs take if the engine costs nothing: list scheduling on the slots of each pool.
fn ideal(session: &Session) -> f64 {
    let widths = PoolWidths::default();
    let runs = session.plan(&batch()).runs;
    let total: u64 = runs
        .iter()
        .map(|run| {
            let width = match run.routing {
                Routing::Read => widths.read,
                Routing::Concurrent => widths.concurrent,
                _ => 1,
            };
            let mut free: BinaryHeap<Reverse<u64>> = (0..width).map(|_| Reverse(0)).collect();
            for n in run.calls.clone() {
                let Reverse(at) = free.pop().expect("a pool is not of width zero");
                free.push(Reverse(at + ms(n)));
            }
            free.into_iter().map(|Reverse(end)| end).max().unwrap_or_default()
        })
        .sum();
    total as f64
}
