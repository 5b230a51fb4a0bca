//! Scenarios with trees of agents and every pool and cap at 1: T1 and T2.

use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use toolyard::{
    Batch, Call, Event, EventKind, EventSink, ForkPolicy, LimitScope, Outcome, PoolWidths, SubAgents, Tool,
    ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn, tool_fn,
};
use toolyard_tests::{call, shape, yard};

const ONE: usize = 1;
/// Longer than any tree here takes; in paused time, a stuck tree gets there at once.
const STUCK: Duration = Duration::from_secs(3600);

/// T1: a serial tool spawns an agent that calls read, serial, read, with everything one wide ⇒ all complete in order.
#[tokio::test(start_paused = true)]
async fn t1_a_serial_tool_spawns_an_agent_that_writes() {
    let yard = yard(|builder, _| {
        let spawns = tool_fn(ToolSpec::write("spawns"), |(): (), cx: ToolContext| async move {
            let agent = cx.fork(ForkPolicy::default())?;
            let calls = ["read", "serial", "read"].iter().zip(["in1", "in2", "in3"]);
            let calls: Vec<_> = calls.map(|(tool, id)| call(id, tool, 10, "ok")).collect();
            Ok(shape(&agent.dispatch(calls).await))
        });
        builder.pools(PoolWidths::new(ONE, ONE)).tree_max_in_flight(ONE).tool(spawns)
    })
    .await;
    let session = yard.engine.session("t1");
    let batch = vec![
        call("before", "read", 10, "ok"),
        Call::new("spawns", "spawns", "{}"),
        call("after", "serial", 10, "ok"),
    ];
    let outcomes = timeout(STUCK, session.dispatch(batch)).await.unwrap();
    assert_eq!(shape(&outcomes), "before ok, spawns ok, after ok");
    assert_eq!(outcomes[1].to_text(), "in1 ok, in2 ok, in3 ok");
    assert_eq!(yard.log.spans(), ["before 0..10", "in1 10..20", "in2 20..30", "in3 30..40", "after 40..50"]);
    yard.events.check();
}

/// Counts the calls that were received and have not started, and the most there were at once.
#[derive(Debug, Clone, Default)]
struct Waiting {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl EventSink for Waiting {
    fn accept(&self, event: &Event) {
        match event.kind {
            EventKind::Received { .. } => {
                let waiting = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(waiting, Ordering::Relaxed);
            }
            EventKind::Called { .. } => {
                self.now.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// The number of calls per batch of a tree.
const WIDTH: usize = 16;

/// A tool that calls itself for as many levels as its argument says, through a sub-agent if it `forks`.
struct Grows {
    forks: Option<ForkPolicy>,
}

fn grown(tool: &str, levels: u64) -> Batch {
    (0..WIDTH).map(|n| Call::new(format!("{levels}-{n}"), tool, json!({"levels": levels}))).collect()
}

#[async_trait]
impl Tool for Grows {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let levels = args["levels"].as_u64().unwrap();
        if levels == 0 {
            return Ok("1".into());
        }
        let below = grown(cx.tool(), levels - 1);
        let outcomes = match &self.forks {
            Some(policy) => cx.fork(policy.clone())?.dispatch(below).await,
            None => cx.dispatch(below).await,
        };
        Ok(ToolOutput::text((1 + sum(&outcomes)).to_string()))
    }
}

fn sum(outcomes: &[Outcome]) -> usize {
    outcomes.iter().map(|outcome| outcome.to_text().parse::<usize>().unwrap()).sum()
}

/// Grows a tree 4 deep and 16 wide with every pool, cap and limit at 1; returns the most calls that waited at once.
async fn grow(spec: ToolSpec, forks: Option<ForkPolicy>) -> usize {
    let (waiting, tool) = (Waiting::default(), spec.name.clone());
    let sink = waiting.clone();
    let yard = yard(|builder, _| {
        builder
            .pools(PoolWidths::new(ONE, ONE))
            .max_in_flight(ONE)
            .tree_max_in_flight(ONE)
            .events(sink)
            .tool(from_fn(spec.max_concurrency(ONE), move || Grows { forks: forks.clone() }))
    })
    .await;
    let session = yard.engine.session("grows");
    let outcomes = timeout(STUCK, session.dispatch(grown(&tool, 3))).await.expect("the tree is not stuck");
    assert_eq!(sum(&outcomes), WIDTH + WIDTH.pow(2) + WIDTH.pow(3) + WIDTH.pow(4));
    yard.events.check();
    waiting.most.load(Ordering::Relaxed)
}

/// T2: a wide tree of agents completes with everything at 1, including the limit of the tool itself, and fewer than
/// 100 calls wait at any time because the deepest go first; the same holds if agents share what they can.
#[tokio::test(start_paused = true)]
async fn t2_a_wide_tree_of_agents_completes_and_few_of_its_calls_wait() {
    for (scope, policy) in [
        (LimitScope::Agent, ForkPolicy::default()),
        (LimitScope::Tree, ForkPolicy::default().share_concurrent()),
    ] {
        let spec = ToolSpec::write("grows").recursive().limit_scope(scope);
        let most = grow(spec, Some(policy)).await;
        assert!(most < 100, "{most} calls waited at once, the limit over {scope:?}");
    }
}

/// I16: a tree of nested reads completes with everything at 1.
#[tokio::test(start_paused = true)]
async fn a_wide_tree_of_reads_completes() {
    grow(ToolSpec::read("grows"), None).await;
}

/// I16: a tree of nested serial calls completes with everything at 1.
#[tokio::test(start_paused = true)]
async fn a_wide_tree_of_serial_calls_completes() {
    grow(ToolSpec::write("grows"), None).await;
}

/// I16: a tree of nested concurrent calls completes with everything at 1.
#[tokio::test(start_paused = true)]
async fn a_wide_tree_of_concurrent_calls_completes() {
    grow(ToolSpec::write("grows").concurrent(), None).await;
}
