//! How a batch is split into runs: reads run together, writes one at a time and in order, calls of a promoted tool
//! beside each other, and no call ever overtakes an earlier write.

use std::time::Duration;
use toolyard::{BuildError, Call, Confirmations, Drain, Engine, ToolContext, ToolFactory, ToolSpec, tool_fn};
use toolyard_examples::bar;

/// A tool that takes 40 ms, as a file or a server might.
fn slow(spec: ToolSpec) -> impl ToolFactory {
    tool_fn(spec, |(): (), cx: ToolContext| async move {
        tokio::time::sleep(Duration::from_millis(40)).await;
        Ok(format!("{} done", cx.call_id()))
    })
}

#[tokio::main]
async fn main() -> Result<(), BuildError> {
    let engine = Engine::builder()
        .tool(slow(ToolSpec::read("look")))
        .tool(slow(ToolSpec::write("write")))
        .tool(slow(ToolSpec::network("post").concurrent()))
        .confirmations(Confirmations::auto()) // nobody is asked in this example
        .build()
        .await?;
    let session = engine.session("demo");
    let names = ["look", "look", "look", "write", "write", "post", "post", "look"];
    let batch: Vec<_> =
        names.iter().enumerate().map(|(n, name)| Call::new(format!("{name} {n}"), *name, "{}")).collect();

    println!("the plan:");
    for (number, run) in session.plan(&batch.clone().into()).runs.iter().enumerate() {
        println!("  run {number}: {:<10} calls {:?}", run.routing.as_str(), run.calls);
    }
    let outcomes = session.dispatch(batch).await;
    println!("the run, each line one call:");
    // Runs follow one another, so a run starts when the longest call of the run before has ended.
    let (mut begins, mut longest, mut run) = (0.0, 0.0, 0);
    let mut rows = Vec::new();
    for outcome in &outcomes {
        if outcome.run != run {
            (begins, longest, run) = (begins + longest, 0.0, outcome.run);
        }
        let (queued, ran) = (outcome.queued().as_secs_f64(), outcome.ran().as_secs_f64());
        longest = f64::max(longest, queued + ran);
        rows.push((outcome, begins + queued, begins + queued + ran));
    }
    let whole = begins + longest;
    for (outcome, from, to) in rows {
        println!(
            "  run {} {:<10} |{}| {}",
            outcome.run,
            outcome.routing.as_str(),
            bar(from, to, whole, 50),
            outcome.call_id
        );
    }
    let alone: f64 = outcomes.iter().map(|outcome| outcome.ran().as_secs_f64()).sum();
    println!("{:.0} ms; one by one it would have been {:.0} ms", whole * 1e3, alone * 1e3);
    engine.shutdown(Drain::default()).await;
    Ok(())
}
