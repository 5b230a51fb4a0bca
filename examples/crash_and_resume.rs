//! Kills itself in the middle of a batch, and goes on: no effect is lost, none happens twice.
//!
//! Run it with `cargo run -p toolyard-examples --features journal --example crash_and_resume` (takes a C compiler).

use std::{
    error::Error,
    fs::{File, OpenOptions, read_to_string},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};
use toolyard::{
    Call, Confirmations, Engine, Outcome, Reconciled, Tool, ToolContext, ToolError, ToolFactory, ToolOutput,
    ToolSpec, async_trait, tool_fn,
};
use toolyard_journal::{Journal, Settings};

/// Where the second process finds what the first one has left.
const DIRECTORY: &str = "TOOLYARD_CRASH_AND_RESUME";

/// Writes a line into a book, and can tell whether a line is there.
#[derive(Clone)]
struct Pay {
    book: PathBuf,
    /// What kills the process in the middle of a call.
    crashes_at: Option<&'static str>,
}

impl ToolFactory for Pay {
    fn spec(&self) -> ToolSpec {
        ToolSpec::network("pay").describe("Pays somebody")
    }

    fn create(&self) -> std::sync::Arc<dyn Tool> {
        std::sync::Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Pay {
    async fn execute(&self, args: &serde_json::Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let who = args["to"].as_str().unwrap_or_default();
        let written = (|| {
            let mut book = OpenOptions::new().create(true).append(true).open(&self.book)?;
            writeln!(book, "{who}")?;
            book.sync_all()
        })();
        written.map_err(|error| ToolError::execution(error.to_string()))?;
        if self.crashes_at == Some(who) {
            std::process::abort(); // paid, and nobody knows
        }
        Ok(format!("paid {who}").into())
    }

    /// Looks whether the payment is in the book, and pays nothing.
    async fn reconcile(&self, args: &serde_json::Value, _: Option<&str>, _: &ToolContext) -> Reconciled {
        let who = args["to"].as_str().unwrap_or_default();
        match read_to_string(&self.book) {
            Ok(book) if book.lines().any(|line| line == who) => {
                Reconciled::Done(format!("paid {who}").into())
            }
            Ok(_) => Reconciled::NotDone { is_final: true },
            Err(_) => Reconciled::Unknown,
        }
    }
}

async fn engine(journal: &Journal, pay: Pay) -> Result<Engine, Box<dyn Error>> {
    let look = tool_fn(ToolSpec::read("look"), |(): (), _: ToolContext| async { Ok("three people wait") });
    let engine = Engine::builder().tool(pay).tool(look).confirmations(Confirmations::auto());
    Ok(engine.recorder(journal.clone()).build().await?)
}

/// The first process: it is gone before its batch has ended.
async fn crash(directory: &Path) -> Result<(), Box<dyn Error>> {
    let journal = Journal::open(directory.join("agent.journal"), Settings::default())?;
    let pay = Pay { book: directory.join("book"), crashes_at: Some("grace") };
    let engine = engine(&journal, pay).await?;
    let pay = |id: &str, to: &str| Call::new(id, "pay", serde_json::json!({"to": to}));
    let calls = vec![Call::new("0", "look", "{}"), pay("1", "ada"), pay("2", "grace"), pay("3", "edsger")];
    engine.session("payday").dispatch(calls).await;
    Ok(())
}

/// The second one goes on.
async fn go_on(directory: &Path) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let journal = Journal::open(directory.join("agent.journal"), Settings::default())?;
    let engine = engine(&journal, Pay { book: directory.join("book"), crashes_at: None }).await?;
    let open = engine.open_turns()?;
    println!("left open: turn {} of {}, with {} calls", open[0].turn, open[0].session, open[0].open_calls);
    let resumed = engine.session(open[0].session.clone()).resume(open[0].turn).await?;
    let outcomes = resumed.finish().await.concat();
    engine.shutdown(toolyard::Drain::default()).await;
    journal.close()?;
    Ok(outcomes)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return crash(Path::new(&directory)).await;
    }
    let directory = tempfile::tempdir()?;
    File::create(directory.path().join("book"))?;
    let first = Command::new(std::env::current_exe()?).env(DIRECTORY, directory.path()).status()?;
    println!("the first process ended with {first}");
    for outcome in go_on(directory.path()).await? {
        let remark = outcome.dedupe.shared_as().unwrap_or("ran now");
        println!("{}  {:<10} {}", outcome.call_id, remark, outcome.to_text());
    }
    println!("the book:\n{}", read_to_string(directory.path().join("book"))?);
    Ok(())
}
