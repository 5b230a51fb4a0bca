//! One session of 500 calls that is killed in its middle and goes on, for comparison with other systems: see
//! `benches/peers/durability/README.md`, whose harness starts this as `killed_session [--reconcile] start|resume JOB`.
//!
//! With `--reconcile` the tool of writes looks into the ledger to find out what became of a call; without, such a call is
//! `interrupted`. What was not started behind one is asked for again, as a model would.

use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    error::Error,
    fs::{self, OpenOptions},
    io::{Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolyard::{
    Batch, Call, Confirmations, Drain, Engine, ErrorKind, Outcome, Reason, Reconciled, Session, Tool,
    ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
};
use toolyard_journal::{Journal, Settings};

/// How many bytes a line of the ledger and of the trace has.
const LINE: u64 = 32;

#[derive(Deserialize)]
struct Job {
    run: u8,
    scenario: PathBuf,
    state_dir: PathBuf,
    ledger: PathBuf,
    trace: PathBuf,
    results: PathBuf,
    kill_after_line: Option<u64>,
}

#[derive(Deserialize)]
struct Scenario {
    batches: Vec<Vec<Planned>>,
}

#[derive(Deserialize, Clone)]
struct Planned {
    id: String,
    kind: String,
    before_ms: u64,
    after_ms: u64,
    output: String,
}

/// A tool of one of the three kinds.
#[derive(Clone)]
struct Kind {
    name: &'static str,
    job: Arc<Job>,
    reconciles: bool,
}

impl ToolFactory for Kind {
    fn spec(&self) -> ToolSpec {
        match self.name {
            "read" => ToolSpec::read("read"),
            "keyed" => ToolSpec::write("keyed").concurrent().idempotent(),
            name => ToolSpec::write(name).concurrent(),
        }
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Kind {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (job, id) = (&self.job, cx.call_id().as_str());
        let millis = |name: &str| Duration::from_millis(args[name].as_u64().unwrap_or_default());
        append(&job.trace, id, job.run, false).map_err(|error| ToolError::execution(error.to_string()))?;
        tokio::time::sleep(millis("before_ms")).await;
        if self.name != "read" {
            let number = append(&job.ledger, id, job.run, true);
            let number = number.map_err(|error| ToolError::execution(error.to_string()))?;
            if self.name == "write" && job.kill_after_line.is_some_and(|line| number >= line) {
                kill_itself();
            }
        }
        tokio::time::sleep(millis("after_ms")).await;
        Ok(args["output"].as_str().unwrap_or_default().into())
    }

    async fn reconcile(&self, args: &Value, _: Option<&str>, cx: &ToolContext) -> Reconciled {
        if !self.reconciles {
            return Reconciled::Unknown;
        }
        let id = cx.call_id().as_str();
        match fs::read_to_string(&self.job.ledger) {
            Ok(ledger) if ledger.lines().any(|line| line.starts_with(id)) => {
                Reconciled::Done(args["output"].as_str().unwrap_or_default().into())
            }
            // The process that has started the call is gone, and wrote in one piece.
            Ok(_) => Reconciled::NotDone { is_final: true },
            Err(_) => Reconciled::Unknown,
        }
    }
}

/// Appends a line. Returns how many there are up to it.
fn append(file: &Path, id: &str, run: u8, sync: bool) -> std::io::Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{id} {run} {now:019}\n").as_bytes())?;
    if sync {
        file.sync_all()?;
    }
    Ok(file.stream_position()? / LINE)
}

#[cfg(target_os = "linux")]
fn kill_itself() {
    let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    assert!(killed.is_ok(), "a process may kill itself");
}

#[cfg(not(target_os = "linux"))]
fn kill_itself() {
    std::process::abort();
}

async fn engine(job: &Arc<Job>, journal: &Journal, reconciles: bool) -> Result<Engine, Box<dyn Error>> {
    let mut builder = Engine::builder().confirmations(Confirmations::auto()).recorder(journal.clone());
    for name in ["read", "write", "keyed"] {
        builder = builder.tool(Kind { name, job: job.clone(), reconciles });
    }
    Ok(builder.build().await?)
}

fn call(planned: &Planned) -> Call {
    let Planned { id, kind, before_ms, after_ms, output } = planned;
    let args = json!({"before_ms": before_ms, "after_ms": after_ms, "output": output});
    let call = Call::new(id.as_str(), kind.as_str(), args);
    if kind == "keyed" { call.idempotency_key(id.as_str()) } else { call }
}

/// The results of a batch: from the journal if it has them, and on from there.
async fn results(session: &Session, key: String, calls: Vec<Call>) -> Result<Vec<Outcome>, Box<dyn Error>> {
    match session.past_request(&key)? {
        Some(past) => Ok(session.resume(past.turn).await?.finish().await.concat()),
        None => Ok(session.dispatch(Batch::new(calls).of_request(key)).await),
    }
}

fn was_held_back(outcome: &Outcome) -> bool {
    outcome.error().is_some_and(|error| error.reason == Some(Reason::PredecessorUnknown))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let reconciles = args.iter().any(|arg| arg == "--reconcile");
    let job = args.last().ok_or("the job's file is missing")?;
    let job: Arc<Job> = Arc::new(serde_json::from_str(&fs::read_to_string(job)?)?);
    let scenario: Scenario = serde_json::from_str(&fs::read_to_string(&job.scenario)?)?;
    let journal = Journal::open(job.state_dir.join("session.journal"), Settings::default())?;
    let engine = engine(&job, &journal, reconciles).await?;
    let session = engine.session("session");
    let mut ended: HashMap<String, Outcome> = HashMap::new();
    for (number, planned) in scenario.batches.iter().enumerate() {
        let mut left: Vec<Call> = planned.iter().map(call).collect();
        for attempt in 0.. {
            let outcomes = results(&session, format!("batch-{number}-{attempt}"), left.clone()).await?;
            let again: Vec<_> =
                outcomes.iter().filter(|it| was_held_back(it)).map(|it| it.call_id.clone()).collect();
            ended.extend(outcomes.into_iter().map(|outcome| (outcome.call_id.to_string(), outcome)));
            left.retain(|call| again.contains(&call.id));
            if left.is_empty() {
                break;
            }
        }
    }
    let result = |planned: &Planned| {
        let outcome = &ended[&planned.id];
        let (status, output) = match outcome.error() {
            None => ("completed", Some(outcome.to_text())),
            Some(error) if error.kind == ErrorKind::Interrupted => ("unknown", None),
            Some(_) => ("not_run", None),
        };
        json!({"id": planned.id, "status": status, "output": output})
    };
    let calls: Vec<_> = scenario.batches.iter().flatten().map(result).collect();
    let new = job.results.with_extension("new");
    fs::write(&new, json!({"calls": calls, "system": {"version": env!("CARGO_PKG_VERSION")}}).to_string())?;
    fs::rename(new, &job.results)?;
    engine.shutdown(Drain::default()).await;
    journal.close()?;
    Ok(())
}
