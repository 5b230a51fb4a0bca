//! What bad calls cost: in one batch of forty, one tool panics, one hangs and one name is unknown. The other 37 calls
//! succeed, and the three have error results.

use std::{future::pending, panic, time::Duration};
use toolyard::{Batch, BuildError, Call, Drain, Engine, ToolContext, ToolError, ToolSpec, tool_fn};

#[tokio::main]
async fn main() -> Result<(), BuildError> {
    panic::set_hook(Box::new(|panic| println!("(a handler panicked: {panic})")));
    let engine = Engine::builder()
        .tool(tool_fn(ToolSpec::read("good"), |(): (), cx: ToolContext| async move {
            Ok(format!("{} is fine", cx.call_id()))
        }))
        .tool(tool_fn(ToolSpec::read("panics"), |(): (), _: ToolContext| async {
            let nothing: Vec<u32> = Vec::new();
            Ok::<_, ToolError>(nothing[0].to_string()) // a bug in a tool
        }))
        .tool(tool_fn(
            ToolSpec::read("hangs").timeout(Duration::from_millis(500)),
            |(): (), _: ToolContext| async {
                pending::<()>().await;
                Ok(())
            },
        ))
        .build()
        .await?;

    let name = |n: usize| match n {
        10 => "panics",
        20 => "hangs",
        30 => "no_such_tool",
        _ => "good",
    };
    let batch: Batch = (0..40).map(|n| Call::new(format!("call_{n}"), name(n), "{}")).collect();
    let outcomes = engine.session("demo").dispatch(batch).await;
    let good = outcomes.iter().filter(|outcome| outcome.success()).count();
    println!("{} results for 40 calls, {good} of them good; the others:", outcomes.len());
    for outcome in outcomes.iter().filter(|outcome| !outcome.success()) {
        if let Some(error) = outcome.error() {
            println!("  {:<8} {:<10} {}", outcome.call_id, error.kind.code(), error.message);
        }
    }
    engine.shutdown(Drain::default()).await;
    Ok(())
}
