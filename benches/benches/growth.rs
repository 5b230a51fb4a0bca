//! Benchmarks growth: tens of thousands of agents, hundreds of thousands of calls in flight.
//!
//! ```text
//!   cargo bench -p toolyard-bench --bench growth
//! ```
//!
//! Heap is counted by an allocator that wraps the system's. It slows everything down, so times can be compared with
//! each other but not with those of `toolyard bench`.

use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::{
    alloc::System,
    sync::Arc,
    task::{Context, Waker},
};
use tokio::{sync::watch, time::Instant};
use toolyard::{
    Batch, Call, ContextParts, Drain, Engine, EngineBuilder, ForkPolicy, Limits, Outcome, PoolWidths,
    Session, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_bench::{Contender, Floor, Handler};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of agents at depth 3, and of calls in each of their batches.
const AGENTS: usize = 10_000;
const BATCH: usize = 8;
/// Number of calls that run, or wait, at once.
const IN_FLIGHT: usize = 100_000;
/// Number of times that each crowd is measured; the crowds take turns.
const ROUNDS: usize = 9;

fn main() {
    // `cargo test` runs benches too: once, on tiny numbers, so that this does not rot.
    let tiny = !std::env::args().any(|arg| arg == "--bench");
    let (agents, in_flight, rounds) = if tiny { (100, 100, 1) } else { (AGENTS, IN_FLIGHT, ROUNDS) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.expect("the runtime starts");
    runtime.block_on(async {
        tokio::spawn(measure_agents(agents, rounds)).await.expect("agents run");
        tokio::spawn(measure_in_flight(in_flight)).await.expect("calls fly");
    });
}

/// Returns the bytes of heap in use.
fn heap() -> usize {
    let stats = HEAP.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Returns how many bytes of heap came into use since `since`. Older memory that is freed meanwhile lowers the figure.
fn grown(since: usize) -> usize {
    heap().saturating_sub(since)
}

struct Nothing;

#[async_trait]
impl Tool for Nothing {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(String::new()))
    }
}

async fn engine(change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
    let builder = Engine::builder().tool(from_fn(ToolSpec::read("nothing"), || Nothing));
    change(builder).build().await.expect("the engine is well configured")
}

fn batch(tool: &'static str, calls: usize) -> Batch {
    let tool: Arc<str> = tool.into();
    (0..calls).map(|n| Call::with_arguments(format!("call_{n}"), tool.clone(), json!({}))).collect()
}

/// Forks agents at depth 3: 10 under the session, 10 under each of those, and `count` under those.
fn leaves(session: &Session, count: usize) -> (Vec<Session>, Vec<Session>) {
    let fork = |parent: &Session| parent.fork(ForkPolicy::default()).expect("three levels are not too deep");
    let upper: Vec<_> = (0..10).map(|_| fork(session)).collect();
    let middle: Vec<_> =
        upper.iter().flat_map(|parent| (0..10).map(|_| fork(parent)).collect::<Vec<_>>()).collect();
    let leaves = (0..count).map(|n| fork(&middle[n % middle.len()])).collect();
    (upper.into_iter().chain(middle).collect(), leaves)
}

async fn measure_agents(agents: usize, rounds: usize) {
    let engine = engine(|builder| builder).await;
    let session = engine.session("tree");
    let before = heap();
    let (_above, leaves) = leaves(&session, agents);
    let idle = grown(before) / agents;
    let crowds: Vec<_> =
        [1, 10, 100, 1000].into_iter().filter(|crowd| *crowd < agents).chain([agents]).collect();
    let floor = Floor::of(Handler::Ready);
    let (mut floors, mut times) = (Vec::new(), vec![Vec::new(); crowds.len()]);
    for _ in 0..rounds {
        floors.push(per_call(agents, floor.work(BATCH, agents)).await);
        for (crowd, times) in crowds.iter().zip(&mut times) {
            // Each crowd runs the same number of batches in all.
            times.push(timed(leaves[..*crowd].iter().cycle().take(agents)).await);
        }
    }
    let used = grown(before) / agents;
    let floor = median(floors);
    println!("{agents} agents at depth 3, batches of {BATCH}");
    println!("  heap of an agent, bytes      {idle:>8}  after its calls {used:>6}");
    println!("  ns a call, the floor         {floor:>8.0}");
    let times: Vec<_> = times.into_iter().map(median).collect();
    for (crowd, time) in crowds.iter().zip(&times) {
        let (of_floor, of_one) = (time / floor, time / times[0]);
        println!(
            "  ns a call, agents {crowd:>6}     {time:>8.0}  {of_floor:.2} of F, {of_one:.2} of one agent"
        );
    }
}

/// Returns nanoseconds per call, with one batch for each of these agents in turn.
async fn timed(agents: impl Iterator<Item = &Session>) -> f64 {
    let agents: Vec<_> = agents.map(|agent| (agent, batch("nothing", BATCH))).collect();
    let batches = agents.len();
    let work = async {
        for (agent, batch) in agents {
            let outcomes = agent.dispatch(batch).await;
            assert!(outcomes.iter().all(Outcome::success));
        }
    };
    per_call(batches, work).await
}

/// Returns nanoseconds per call of `work`, which runs this many batches.
async fn per_call(batches: usize, work: impl Future<Output = ()>) -> f64 {
    let started_at = Instant::now();
    work.await;
    let calls = u32::try_from(batches * BATCH).expect("there are few calls");
    started_at.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A tool that waits until the gate opens.
struct Waits(watch::Receiver<bool>);

#[async_trait]
impl Tool for Waits {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut gate = self.0.clone();
        let opened = gate.wait_for(|open| *open).await;
        opened
            .map(|_| ToolOutput::text(String::new()))
            .map_err(|_| ToolError::execution("the gate was dropped"))
    }
}

fn waits(gate: watch::Receiver<bool>) -> impl ToolFactory + 'static {
    from_fn(ToolSpec::read("waits"), move || Waits(gate.clone()))
}

/// Returns the bytes of heap that the tool itself holds in a call that waits in it: its instance and its future.
fn own(tool: &impl ToolFactory, calls: usize) -> usize {
    let (args, cx) = (json!({}), ToolContext::new(ContextParts::detached("waits")));
    let (mut tools, mut handlers) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    let before = heap();
    tools.extend((0..calls).map(|_| tool.create()));
    for tool in &tools {
        let mut handler = tool.execute(&args, &cx);
        let polled = handler.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the gate is closed");
        handlers.push(handler);
    }
    grown(before) / calls
}

async fn measure_in_flight(calls: usize) {
    for (what, width) in [("running", calls), ("waiting", 1)] {
        let (open, gate) = watch::channel(false);
        let own = if what == "running" { own(&waits(gate.clone()), calls) } else { 0 };
        let engine = engine(|builder| {
            let mut widths = PoolWidths::default();
            widths.read = width;
            let mut limits = Limits::default();
            (limits.batch_calls_max, limits.queue_session_max, limits.queue_engine_max) =
                (calls, calls, calls);
            builder.pools(widths).limits(limits).tool(waits(gate))
        })
        .await;
        let session = engine.session("flying");
        let before = heap();
        let batch = batch("waits", calls);
        let given = grown(before);
        let dispatch = tokio::spawn(async move { session.dispatch(batch).await });
        wait_until_admitted(&engine, calls).await;
        let (held, given) = (grown(before) / calls, given / calls);
        println!(
            "{calls} calls {what}: {held} bytes of heap per call, of which {given} are the call as passed in and {own} the tool's own"
        );
        open.send_replace(true);
        let outcomes = dispatch.await.expect("the dispatch ends");
        assert!(outcomes.iter().all(Outcome::success));
        engine.shutdown(Drain::default()).await;
    }
}

async fn wait_until_admitted(engine: &Engine, calls: usize) {
    loop {
        let status = engine.status().await.expect("the engine runs");
        if status.pools.iter().map(|pool| pool.running + pool.queued).sum::<usize>() == calls {
            break;
        }
        tokio::task::yield_now().await;
    }
    // Calls that have their permits must also reach their wait.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
}
