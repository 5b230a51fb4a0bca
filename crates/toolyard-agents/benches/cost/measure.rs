//! What is measured, and how.

use crate::{agent::ROLE, bare};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Builder,
    time::{Instant, sleep},
};
use toolyard::{
    Confirmations, Drain, Engine, Event, EventKind, Session, SessionOptions, ToolContext, ToolSpec, tool_fn,
};
use toolyard_agents::{AgentHandle, Means, Place, Profile, Supervisor, SupervisorOptions};
use toolyard_process::Helper;

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Whether this is a test, which only shows that it works.
const IS_TEST: bool = cfg!(debug_assertions);

const ROUNDS: usize = if IS_TEST { 1 } else { 7 };
const TRIP_ROUNDS: usize = if IS_TEST { 2 } else { 15 };
const TRIPS: usize = if IS_TEST { 20 } else { 20_000 };
const READS: usize = 64;
const AGENTS: usize = if IS_TEST { 3 } else { 500 };
const CHURN: Duration = Duration::from_secs(if IS_TEST { 1 } else { 60 });

/// How many times the round trip of a bare program a call may take.
const TRIP_GOAL: f64 = 1.5;
/// How many times as fast 64 reads at once must be.
const READS_GOAL: f64 = 15.0;
/// How many bytes an agent that waits may take in this process.
const MEMORY_GOAL: u64 = 64 << 10;

pub(crate) fn main() -> Result<(), Failed> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        trips().await?;
        if env::args().any(|arg| arg == "trips-alone") {
            return Ok(());
        }
        reads().await?;
        many().await?;
        churn().await
    })
}

/// An engine with agents, and the session above them.
struct Yard {
    supervisor: Supervisor,
    engine: Engine,
    session: Session,
    /// How many calls have come and have not ended.
    open_calls: Arc<AtomicI64>,
}

impl Yard {
    async fn open(place: Place) -> Result<Self, Failed> {
        let own = |what: &[&str]| {
            let args = [ROLE].iter().chain(what).map(|arg| (*arg).to_owned());
            Ok::<_, std::io::Error>(
                Profile::new(env::current_exe()?).args(args).tools(["Echo", "slow", "inline"]).place(place),
            )
        };
        let trips = TRIPS.to_string();
        let reads = READS.to_string();
        let profiles = BTreeMap::from([
            ("trips".to_owned(), own(&["trips", &trips])?),
            ("inline".to_owned(), own(&["trips", &trips, "inline"])?),
            ("one-by-one".to_owned(), own(&["reads", &reads])?),
            ("at-once".to_owned(), own(&["reads", &reads, "at-once"])?),
            ("waits".to_owned(), own(&["waits"])?),
            ("calls".to_owned(), own(&["calls"])?),
        ]);
        let means = Means::default().helper(Helper::this_program()?);
        let supervisor = Supervisor::new(SupervisorOptions::new(profiles, means));
        let slow = tool_fn(ToolSpec::read("slow"), |_: Anything, _: ToolContext| async move {
            sleep(Duration::from_millis(10)).await;
            Ok("")
        });
        let inline = tool_fn(
            ToolSpec::pure("inline").inline(),
            |Anything { text }: Anything, _: ToolContext| async move { Ok(json!({"text": text})) },
        );
        let open_calls = Arc::new(AtomicI64::new(0));
        let counted = open_calls.clone();
        let counts = move |event: &Event| match &event.kind {
            EventKind::Received { .. } => drop(counted.fetch_add(1, Ordering::SeqCst)),
            kind if kind.is_failure() || matches!(kind, EventKind::Completed { .. }) => {
                counted.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        };
        let builder = Engine::builder()
            .tools(supervisor.tools())
            .tool(slow)
            .tool(inline)
            .events(supervisor.sink())
            .events(counts);
        let engine = builder.confirmations(Confirmations::auto()).build().await?;
        let session = engine.open("bench", SessionOptions::default())?;
        Ok(Self { supervisor, engine, session, open_calls })
    }

    async fn start(&self, profile: &str) -> Result<AgentHandle, Failed> {
        Ok(self.supervisor.start(&self.session, profile, None, None).await?)
    }

    /// What an agent of this profile gives with its bye.
    async fn run(&self, profile: &str) -> Result<f64, Failed> {
        let report = self.start(profile).await?.ended().await;
        let result = report.result.as_ref().and_then(Value::as_f64);
        result.ok_or_else(|| format!("{profile} ended as {}", report.end).into())
    }

    async fn close(self) {
        self.supervisor.stop(Duration::ZERO).await;
        self.engine.shutdown(Drain::default()).await;
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {
    text: String,
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The least and the most.
fn range(of: &[f64]) -> String {
    let (least, most) =
        of.iter().fold((f64::MAX, 0.0_f64), |(least, most), one| (least.min(*one), most.max(*one)));
    format!("{least:.2} to {most:.2}")
}

/// A call that does nothing, beside a bare program.
async fn trips() -> Result<(), Failed> {
    let yard = Yard::open(Place::Host).await?;
    let args = [ROLE.to_owned(), "trips".to_owned(), TRIPS.to_string()];
    let (mut ratios, mut ours, mut inlines) = (Vec::new(), Vec::new(), Vec::new());
    let bare = async || bare::run(args.to_vec()).await?.as_f64().ok_or(Failed::from("no time"));
    let mut bares = Vec::new();
    for round in 0..TRIP_ROUNDS {
        // In turns, so that what else the machine does favours neither.
        let (own, bare) = if round % 2 == 0 {
            let bare = bare().await?;
            (yard.run("trips").await?, bare)
        } else {
            (yard.run("trips").await?, bare().await?)
        };
        inlines.push(yard.run("inline").await? / 1000.0);
        ratios.push(own / bare);
        ours.push(own / 1000.0);
        bares.push(bare / 1000.0);
    }
    yard.close().await;
    println!(
        "a call that does nothing: {:.2} × a bare program on one thread ({}); {:.1} µs ({}) beside {:.1} µs ({}); goal {TRIP_GOAL}",
        median(ratios.clone()),
        range(&ratios),
        median(ours.clone()),
        range(&ours),
        median(bares.clone()),
        range(&bares)
    );
    println!(
        "the same with a tool that runs in place, without a task: {:.1} µs ({})",
        median(inlines.clone()),
        range(&inlines)
    );
    Ok(())
}

/// 64 reads of 10 ms at once, in a pool of 20, beside one after another.
async fn reads() -> Result<(), Failed> {
    let yard = Yard::open(Place::Host).await?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS.min(3) {
        ratios.push(yard.run("one-by-one").await? / yard.run("at-once").await?);
    }
    yard.close().await;
    let shown = range(&ratios);
    println!(
        "{READS} reads at once: {:.1} × as fast as one after another ({shown}); goal {READS_GOAL}",
        median(ratios)
    );
    Ok(())
}

/// The memory of this process that is its own, in bytes.
fn memory(of: &str) -> Result<u64, Failed> {
    let text = fs::read_to_string(format!("/proc/{of}/smaps_rollup"))?;
    let line = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
    };
    Ok((line("Private_Clean:") + line("Private_Dirty:")) << 10)
}

/// Many agents at once: what each that waits takes here, and beside it; and how many calls all of them make in a second.
async fn many() -> Result<(), Failed> {
    let yard = Yard::open(Place::Process).await?;
    let before = memory("self")?;
    let began = Instant::now();
    let mut agents = Vec::new();
    for _ in 0..AGENTS {
        agents.push(yard.start("waits").await?);
    }
    loop {
        let status = yard.supervisor.status().await;
        if status.len() == AGENTS && status.iter().all(|agent| agent.counts.answered == 1) {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    let started = began.elapsed();
    let each = memory("self")?.saturating_sub(before) / AGENTS as u64;
    let helpers = yard
        .supervisor
        .status()
        .await
        .iter()
        .filter_map(|agent| memory(&agent.pid?.to_string()).ok())
        .sum::<u64>();
    let helper = helpers / AGENTS as u64;
    println!(
        "{AGENTS} agents at once: started and answered in {:.1} s; each takes {} KiB here (goal {}), and its helper {} KiB",
        started.as_secs_f64(),
        each >> 10,
        MEMORY_GOAL >> 10,
        helper >> 10
    );
    drop(agents);
    yard.close().await;
    let yard = Yard::open(Place::Process).await?;
    let mut agents = Vec::new();
    for _ in 0..AGENTS {
        agents.push(yard.start("trips").await?);
    }
    let answered =
        async || yard.supervisor.status().await.iter().map(|agent| agent.counts.answered).sum::<u64>();
    let (from, began) = (answered().await, Instant::now());
    sleep(Duration::from_secs(if IS_TEST { 1 } else { 10 })).await;
    let (to, took) = (answered().await, began.elapsed());
    println!(
        "{AGENTS} agents that call: {:.0} calls a second",
        to.saturating_sub(from) as f64 / took.as_secs_f64()
    );
    drop(agents);
    yard.close().await;
    Ok(())
}

/// One agent is killed and another one started every 100 ms: no call stays without an answer, and no process is left.
async fn churn() -> Result<(), Failed> {
    let yard = Yard::open(Place::Process).await?;
    let (began, mut killed) = (Instant::now(), 0_u32);
    let mut agents = std::collections::VecDeque::new();
    for _ in 0..10 {
        agents.push_back(yard.start("calls").await?);
    }
    while began.elapsed() < CHURN {
        agents.push_back(yard.start("calls").await?);
        sleep(Duration::from_millis(100)).await;
        drop(agents.pop_front()); // ended at once
        killed += 1;
    }
    let pids: Vec<u32> = yard.supervisor.reports().iter().filter_map(|report| report.pid).collect();
    drop(agents);
    yard.supervisor.stop(Duration::ZERO).await;
    yard.engine.shutdown(Drain::default()).await;
    let open = yard.open_calls.load(Ordering::SeqCst);
    let left = pids.iter().filter(|pid| fs::exists(format!("/proc/{pid}")).unwrap_or(true)).count();
    let reports = yard.supervisor.reports();
    let calls: u64 = reports.iter().map(|report| report.counts.calls).sum();
    println!("{}", json!({"killed": killed, "calls": calls, "calls_left": open, "processes_left": left}));
    match (open, left) {
        (0, 0) => Ok(()),
        _ => Err("something is left".into()),
    }
}
