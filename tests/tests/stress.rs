//! A randomised stress test of the whole engine on several threads in real time (TS-4). The random choices are
//! seeded, but the thread interleaving is not, so nothing is asserted about times: every call has one end, the
//! grammar of events holds, and nothing is left over.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::Xoshiro256PlusPlus as Chance};
use serde_json::json;
use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};
use toolyard::{
    Batch, BreakerPolicy, Call, Engine, ForkPolicy, Outcome, PoolWidths, RetryPolicy, Session,
    SessionOptions, SubAgents as _, ToolClass, ToolContext, ToolError, ToolFactory, ToolSpec, tool_fn,
};
use toolyard_tests::{Number, Yard, yard};

/// How many agents run concurrently, and how many batches each dispatches.
const AGENTS: u64 = 4;
const BATCHES: u64 = 100;
/// How deep handlers nest.
const DEPTH: u64 = 4;

const LEAVES: [&str; 7] = ["read", "serial", "concurrent", "named", "inline", "limited", "blocks"];
const NESTS: [&str; 6] =
    ["nest_read", "nest_serial", "nest_concurrent", "nest_named", "nest_inline", "nest_blocks"];

/// A random batch with up to `depth` levels of nested calls.
fn calls(dice: &mut Chance, depth: u64) -> Batch {
    let one = |dice: &mut Chance, n: u32| {
        if depth > 0 && dice.random_ratio(1, 3) {
            let tool = NESTS[dice.random_range(0..NESTS.len())];
            return Call::new(
                format!("c{n}"),
                tool,
                Number { n: u64::from(dice.random::<u32>()) * 8 + depth - 1 },
            );
        }
        let end = ["ok", "ok", "ok", "ok", "fail", "panic", "polite_or_ok"][dice.random_range(0..7)];
        Call::new(format!("c{n}"), LEAVES[dice.random_range(0..LEAVES.len())], json!({"end": end}))
    };
    let len = if dice.random_ratio(1, 12) { 0 } else { dice.random_range(1..6) };
    (0..len).map(|n| one(dice, n)).collect()
}

/// A tool that yields once and ends as its arguments say.
fn leaf(spec: ToolSpec) -> impl ToolFactory {
    tool_fn(spec, |args: serde_json::Value, cx: ToolContext| async move {
        tokio::task::yield_now().await;
        match args["end"].as_str().unwrap() {
            "fail" => Err(ToolError::execution("scripted failure")),
            "panic" => panic!("scripted panic"),
            "polite_or_ok" if cx.is_cancelled() => Err(ToolError::cancelled("stopped")),
            _ => Ok("done"),
        }
    })
}

/// A tool that makes nested calls, chosen by the seed in its arguments.
fn nest(spec: ToolSpec) -> impl ToolFactory {
    tool_fn(spec, |Number { n: seed }, cx: ToolContext| async move {
        let (mut dice, depth) = (Chance::seed_from_u64(seed), seed % 8);
        for _ in 0..dice.random_range(1..3) {
            step(&mut dice, &cx, depth).await?;
        }
        Ok("done")
    })
}

/// Polls a future a few times and then drops it.
async fn for_a_while(dice: &mut Chance, future: impl Future) {
    let polls = dice.random_range(0..6);
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if futures::poll!(&mut future).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn agrees(batch: &Batch, outcomes: &[Outcome]) {
    let made: Vec<_> = batch.calls().iter().map(|call| &call.id).collect();
    assert_eq!(made, outcomes.iter().map(|outcome| &outcome.call_id).collect::<Vec<_>>(), "CL-4");
}

/// One random step of a handler.
async fn step(dice: &mut Chance, cx: &ToolContext, depth: u64) -> Result<(), ToolError> {
    let batch = calls(dice, depth);
    match dice.random_range(0..8) {
        0 => for_a_while(dice, cx.dispatch(batch)).await,
        1 => {
            let (other, third) = (calls(dice, depth), calls(dice, depth));
            let dropped = for_a_while(dice, cx.dispatch(third));
            let (a, b, ()) = tokio::join!(cx.dispatch(batch.clone()), cx.dispatch(other.clone()), dropped);
            agrees(&batch, &a);
            agrees(&other, &b);
        }
        2 => {
            let Ok(fork) = cx.fork(ForkPolicy::default()) else { return Ok(()) };
            agrees(&batch, &fork.dispatch(batch.clone()).await);
        }
        3 => {
            // This dispatch may outlive the handler.
            let Ok(fork) = cx.fork(ForkPolicy::default().share_concurrent()) else { return Ok(()) };
            tokio::spawn(async move { agrees(&batch, &fork.dispatch(batch.clone()).await) });
        }
        4 => stream(dice, &cx.fork(ForkPolicy::default())?, batch).await,
        5 => {
            let lent = cx.clone();
            let task = tokio::spawn(async move { agrees(&batch, &lent.dispatch(batch.clone()).await) });
            if dice.random() {
                task.await.unwrap();
            }
        }
        _ => agrees(&batch, &cx.dispatch(batch.clone()).await),
    }
    Ok(())
}

async fn stream(dice: &mut Chance, session: &Session, batch: Batch) {
    let open = session.open_batch();
    for call in batch.clone() {
        open.push(call);
        if dice.random() {
            tokio::task::yield_now().await;
        }
    }
    match dice.random_range(0..5) {
        0 => drop(open),
        1 => for_a_while(dice, open.finish()).await,
        2 => {
            open.cancel();
            agrees(&batch, &open.finish().await);
        }
        _ => agrees(&batch, &open.finish().await),
    }
}

/// Plays one agent.
async fn agent(engine: Engine, number: u64) {
    let mut dice = Chance::seed_from_u64(number);
    let options = || match number % 2 {
        0 => SessionOptions::default(),
        _ => SessionOptions::default().tree_max_in_flight(2),
    };
    for n in 0..BATCHES {
        // The name is reused again and again: its session closes when its last call is gone.
        let session = engine.session_with(format!("agent {}", number + AGENTS * (n % 2)), options());
        let batch = calls(&mut dice, DEPTH);
        match dice.random_range(0..8) {
            0 => for_a_while(&mut dice, session.dispatch(batch)).await,
            1 => {
                let turn = session.turn();
                let cancel = async {
                    for _ in 0..dice.random_range(0..20) {
                        tokio::task::yield_now().await;
                    }
                    turn.cancel();
                };
                let (outcomes, ()) = tokio::join!(turn.dispatch(batch.clone()), cancel);
                agrees(&batch, &outcomes);
            }
            2 => stream(&mut dice, &session, batch).await,
            3 => {
                let alone = session.clone();
                drop(session);
                tokio::spawn(async move { agrees(&batch, &alone.dispatch(batch.clone()).await) });
            }
            4 => {
                let _ = engine.resize(ToolClass::Concurrent, dice.random_range(1..4)).await;
                let _ = engine.resize(ToolClass::Read, dice.random_range(1..4)).await;
                agrees(&batch, &session.dispatch(batch.clone()).await);
            }
            5 => {
                let fork = session.fork(ForkPolicy::default()).unwrap();
                let (outcomes, ()) = tokio::join!(fork.dispatch(batch.clone()), async {
                    tokio::task::yield_now().await;
                    fork.cancel();
                });
                agrees(&batch, &outcomes);
            }
            _ => agrees(&batch, &session.dispatch(batch.clone()).await),
        }
    }
}

async fn narrow() -> Yard {
    let mut widths = PoolWidths::default();
    (widths.read, widths.concurrent) = (2, 1);
    let one = 1;
    yard(|builder, _| {
        let mut builder = builder.pools(widths);
        for (leaf_name, nest_name, spec) in [
            (
                "named",
                "nest_named",
                (|name| ToolSpec::write(name).serial_scope("db")) as fn(&str) -> ToolSpec,
            ),
            ("inline", "nest_inline", |name| ToolSpec::read(name).inline()),
            ("blocks", "nest_blocks", |name| ToolSpec::write(name).blocking()),
        ] {
            builder = builder.tool(leaf(spec(leaf_name))).tool(nest(spec(nest_name)));
        }
        builder
            .tool(leaf(ToolSpec::read("limited").max_concurrency(one)))
            .tool(nest(ToolSpec::read("nest_read")))
            .tool(nest(ToolSpec::write("nest_serial")))
            .tool(nest(ToolSpec::write("nest_concurrent").concurrent().max_concurrency(one)))
    })
    .await
}

/// Waits until no call is left and every session is closed.
async fn until_quiet(yard: &Yard) {
    loop {
        let status = yard.engine.status().await.unwrap();
        let loads = status.pools.iter().map(|pool| pool.running + pool.queued).sum::<usize>();
        let open = |kind: &str| yard.events.events().iter().filter(|event| event.kind.name() == kind).count();
        if loads == 0 && open("session.opened") == open("session.closed") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn go(seeds: std::ops::Range<u64>) {
    let yard = narrow().await;
    let agents = seeds.map(|number| tokio::spawn(agent(yard.engine.clone(), number)));
    for agent in join_all(agents).await {
        agent.unwrap();
    }
    until_quiet(&yard).await;
    yard.events.check();
}

/// TS-4, I1–I3, I6, I16: agents of nested calls, forks, streams, cancels, drops and resizes.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn agents_on_several_threads_leave_nothing_behind() {
    tokio::time::timeout(Duration::from_secs(100), go(0..AGENTS)).await.unwrap();
}

/// A running handler of a key. It counts the handlers that run, and those that started while another ran.
struct Running(Arc<Mutex<(u32, u32)>>);

impl Running {
    fn begin(beside: Arc<Mutex<(u32, u32)>>) -> Self {
        {
            let mut beside = beside.lock().unwrap();
            beside.0 += 1;
            beside.1 += u32::from(beside.0 > 1);
        }
        Self(beside)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

/// A tool that fails twice, at once or a little later, and counts handlers that run concurrently.
fn flaky(beside: &Arc<Mutex<(u32, u32)>>) -> impl ToolFactory + use<> {
    let delays = RetryPolicy::default().with_delays(Duration::from_micros(300), 2.0, Duration::from_secs(1));
    let spec = ToolSpec::write("flaky").concurrent().idempotent().retry(delays);
    let beside = beside.clone();
    tool_fn(spec, move |Number { n: wait }, cx: ToolContext| {
        let beside = beside.clone();
        async move {
            let _running = Running::begin(beside);
            for _ in 0..wait {
                tokio::task::yield_now().await;
            }
            if cx.attempt() < 3 { Err(ToolError::transient("again")) } else { Ok("done") }
        }
    })
}

/// ID-3, ID-4, SC-3: callers of one key come and leave at any moment; each has one end, and two handlers of one key
/// never run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn callers_of_one_key_join_and_cancel() {
    let beside = Arc::default();
    let tool = flaky(&beside);
    let yard = yard(|builder, _| builder.breaker(BreakerPolicy::DISABLED).tool(tool)).await;
    let session = yard.engine.session("s");
    let mut dice = Chance::seed_from_u64(1);
    for key in 0..2000 {
        let wait = dice.random_range(0..20);
        let callers = (0..3).map(|n| {
            let mut call = Call::new(format!("c{n}"), "flaky", Number { n: wait });
            call.idempotency_key = Some(format!("k{key}").into());
            call.deadline = dice.random_ratio(1, 10).then_some(Duration::from_millis(1));
            let (turn, how, after) = (session.turn(), dice.random_range(0..4), dice.random_range(0..400));
            async move {
                let leave = async {
                    for _ in 0..after {
                        tokio::task::yield_now().await;
                    }
                    match how {
                        0 => turn.cancel(),
                        1 | 2 => drop(turn.cancel_call(&format!("c{n}"))),
                        _ => {}
                    }
                };
                let outcomes = tokio::join!(turn.dispatch(vec![call]), leave).0;
                assert_eq!(outcomes.len(), 1);
            }
        });
        let all = join_all(callers.map(tokio::spawn).collect::<Vec<_>>());
        let ended = tokio::time::timeout(Duration::from_secs(60), all).await.expect("timed out");
        ended.into_iter().for_each(Result::unwrap);
        assert_eq!(beside.lock().unwrap().1, 0, "at most one handler per key runs");
    }
    yard.events.check();
}
