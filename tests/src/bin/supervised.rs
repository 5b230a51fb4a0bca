//! A program that embeds an engine with a shell and acts as its own supervisor: tests start it, kill it, and have it
//! supervise their commands.
//!
//! ```text
//! supervised ROOT COMMAND    runs the command in the workspace ROOT and prints its result
//! ```

use std::{env, error::Error, sync::Arc};
use toolyard::{Call, Confirmations, Engine, ToolFactory};

fn main() -> Result<(), Box<dyn Error>> {
    #[cfg(target_os = "linux")]
    toolyard_process::help_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (root, command) =
        (args.next().ok_or("missing argument ROOT")?, args.next().ok_or("missing argument COMMAND")?);
    let engine = Engine::builder()
        .tools(toolyard_tools::workspace(root)?)
        .tool(shell()?)
        .confirmations(Confirmations::auto())
        .build()
        .await?;
    let call = Call::new("a", "shell", serde_json::json!({ "command": command }));
    for outcome in engine.session("s").dispatch(vec![call]).await {
        println!("{}", outcome.to_text());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn shell() -> Result<Arc<dyn ToolFactory>, Box<dyn Error>> {
    use toolyard_process::{Containment, Helper};
    use toolyard_tools::shell::Shell;
    Ok(Arc::new(Shell::new(Containment::Helper(Helper::this_program()?))))
}

#[cfg(not(target_os = "linux"))]
fn shell() -> Result<Arc<dyn ToolFactory>, Box<dyn Error>> {
    Err("helpers exist only on Linux".into())
}
