//! Pools while trees of agents make calls (CC-2): status, resize, pause, drain.

use crate::nested::{nest, nesting};
use std::time::Duration;
use toolyard::{
    Drain, Engine, ErrorKind, ForkPolicy, PoolState, PoolWidths, Session, SessionOptions, ToolClass,
    ToolSpec,
    status::{Bound, Holder, HolderState, Missing, Waiting, Who},
};
use toolyard_tests::{Yard, call, kinds, scripted, yard};

async fn after(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// A lane of waiters as one line: `s: 2 calls at 1, 30 ms, for ...`.
fn line(waiting: &Waiting) -> String {
    let session = waiting.session.as_ref().map_or("?".to_owned(), ToString::to_string);
    let who = match waiting.who {
        Who::Calls { depth } => format!("calls at {depth}"),
        _ => "handlers".to_owned(),
    };
    let missing = waiting.missing.iter().map(missing).collect::<Vec<_>>().join(" and ");
    format!("{session}: {} {who}, {} ms, for {missing}", waiting.count, waiting.longest.as_millis())
}

fn missing(missing: &Missing) -> String {
    match missing {
        Missing::Place { of, in_use, width, is_paused, .. } => {
            let of = match of {
                Bound::Pool(class) => format!("pool {class}"),
                bound => format!("{bound:?}").to_lowercase(),
            };
            format!("{of} {in_use}/{width}{}", if *is_paused { " paused" } else { "" })
        }
        Missing::Lease { scope, holders, is_paused, .. } => {
            let holders = holders.iter().map(holder).collect::<Vec<_>>().join(" on ");
            let paused = if *is_paused { " paused" } else { "" };
            format!("lease {}, {holders}{paused}", scope.as_deref().unwrap_or("tree"))
        }
        missing => panic!("{missing:?} is new"),
    }
}

fn holder(holder: &Holder) -> String {
    let session = holder.session.as_ref().map_or("?".to_owned(), ToString::to_string);
    let state = match holder.state {
        HolderState::Parked => "parked",
        HolderState::Running => "running",
        state => panic!("{state:?} is not in these tests"),
    };
    format!("{session} {state}")
}

async fn waiting(engine: &Engine) -> Vec<String> {
    engine.status().await.unwrap().waiting.iter().map(line).collect()
}

/// CC-2: the status shows which calls wait, for what, for how long, and which calls hold the leases.
#[tokio::test(start_paused = true)]
async fn the_status_lists_waiters_and_what_they_need() {
    let yard = yard(|builder, log| {
        builder
            .pools(PoolWidths::new(2, 1))
            .tool(nesting(ToolSpec::write("nest"), log))
            .tool(scripted(ToolSpec::write("db").serial_scope("db"), log))
            .tool(scripted(ToolSpec::read("narrow").max_concurrency(1), log))
    })
    .await;
    let session = yard.engine.session("s");
    let other = yard.engine.session_with("t", SessionOptions::default().max_in_flight(1));
    let calls = |tool: &str, count: u32| {
        (0..count).map(|n| call(&format!("{tool}{n}"), tool, 100, "ok")).collect::<Vec<_>>()
    };
    let operator = async {
        after(30).await;
        let status = yard.engine.status().await.unwrap();
        assert_eq!((status.parked, status[ToolClass::Serial].running), (1, 2), "{status:?}");
        assert_eq!(
            status.waiting.iter().map(line).collect::<Vec<_>>(),
            [
                "s: 2 calls at 0, 30 ms, for pool read 2/2 and tool 1/1",
                "t: 3 calls at 0, 30 ms, for pool read 2/2 and session 1/1",
                "s: 1 calls at 0, 30 ms, for lease tree, s running on s parked",
                "s: 1 calls at 0, 20 ms, for lease db, t running",
            ]
        );
    };
    let later = async {
        after(10).await;
        session.dispatch(calls("db", 1)).await
    };
    tokio::join!(
        session.dispatch(vec![nest("n", "nest", calls("serial", 1))]),
        session.dispatch(calls("narrow", 3)),
        session.dispatch(calls("read", 1)),
        other.dispatch(calls("db", 1)),
        other.dispatch(calls("read", 3)),
        session.dispatch(calls("serial", 1)),
        later,
        operator,
    );
    let status = yard.engine.status().await.unwrap();
    assert!(status.waiting.is_empty() && status.parked == 0, "{status:?}");
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(json["pools"][0]["class"], "read");
    yard.events.check();
}

fn family(yard: &Yard) -> [Session; 3] {
    let session = yard.engine.session("s");
    let [one, two] = [0, 1].map(|_| session.fork(ForkPolicy::default()).unwrap());
    [session, one, two]
}

fn writes(agent: usize, count: usize) -> Vec<toolyard::Call> {
    (0..count).map(|n| call(&format!("{agent}-{n}"), "concurrent", 10, "ok")).collect()
}

/// CL-6, CL-7: a resize and a pause apply to the concurrent pools of all forks, including later ones, and the status
/// of the class includes their running and queued calls.
#[tokio::test(start_paused = true)]
async fn forks_are_resized_and_paused_with_their_class() {
    let yard = yard(|builder, _| builder.pools(PoolWidths::new(2, 2))).await;
    let [root, one, two] = family(&yard);
    let operator = async {
        after(5).await;
        let pool = yard.engine.status().await.unwrap()[ToolClass::Concurrent];
        assert_eq!((pool.width, pool.running, pool.queued), (2, 4, 16));
        assert_eq!(yard.engine.resize(ToolClass::Concurrent, 3).await, Ok(2));
        let pool = yard.engine.status().await.unwrap()[ToolClass::Concurrent];
        assert_eq!((pool.width, pool.running, pool.queued), (3, 6, 14));
        yard.engine.pause(ToolClass::Concurrent).await.unwrap();
        after(95).await;
        let pool = yard.engine.status().await.unwrap()[ToolClass::Concurrent];
        assert_eq!((pool.state, pool.running, pool.queued), (PoolState::Paused, 0, 24));
        let lines = waiting(&yard.engine).await;
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.ends_with("for pool concurrent 0/3 paused")), "{lines:?}");
        yard.engine.resume(ToolClass::Concurrent).await.unwrap();
        let pool = yard.engine.status().await.unwrap()[ToolClass::Concurrent];
        assert_eq!((pool.state, pool.running), (PoolState::Running, 9));
    };
    let late = async {
        after(50).await;
        two.dispatch(writes(2, 10)).await
    };
    let (mine, its, late, ()) =
        tokio::join!(root.dispatch(writes(0, 10)), one.dispatch(writes(1, 10)), late, operator);
    for outcomes in [mine, its, late] {
        assert_eq!(kinds(&outcomes), vec![None; 10]);
    }
    yard.events.check();
}

/// SC-8: a drain reaches forks: their waiting calls end at once, their running calls may finish.
#[tokio::test(start_paused = true)]
async fn a_drain_reaches_forks() {
    let yard = yard(|builder, _| builder.pools(PoolWidths::new(2, 2))).await;
    let [root, one, two] = family(&yard);
    let operator = async {
        after(5).await;
        yard.engine.pause(ToolClass::Concurrent).await.unwrap();
        let report = yard.engine.shutdown(Drain::default()).await;
        assert_eq!(report.abandoned, 0);
    };
    let (mine, its, ()) = tokio::join!(root.dispatch(writes(0, 5)), one.dispatch(writes(1, 5)), operator);
    for outcomes in [mine, its, two.dispatch(writes(2, 2)).await] {
        let (ran, refused) = outcomes.iter().partition::<Vec<_>, _>(|outcome| outcome.success());
        assert_eq!(ran.len(), if outcomes.len() == 5 { 2 } else { 0 });
        assert!(refused.iter().all(|outcome| outcome.error().unwrap().kind == ErrorKind::ShuttingDown));
    }
    assert_eq!(yard.log.now(), 10, "the paused pool delays no one else");
    yard.engine.status().await.unwrap_err();
    yard.events.check();
}

/// CC-4: one tree parks at most a quarter of what the engine may; another tree is not affected, and what has resumed
/// makes room again.
#[tokio::test(start_paused = true)]
async fn one_tree_parks_a_quarter_of_the_engines_bound() {
    let yard = yard(|builder, log| {
        let mut limits = toolyard::Limits::default();
        limits.parked_max = 8;
        builder.limits(limits).tool(nesting(ToolSpec::read("nests"), log))
    })
    .await;
    let batch = || -> Vec<_> {
        (0..4).map(|n| nest(&format!("n{n}"), "nests", vec![call("in", "serial", 10, "ok")])).collect()
    };
    for _ in 0..2 {
        let (one, other) = (yard.engine.session("one"), yard.engine.session("other"));
        let (one, other) = tokio::join!(one.dispatch(batch()), other.dispatch(batch()));
        for outcomes in [one, other] {
            let texts: Vec<_> = outcomes.iter().map(toolyard::Outcome::to_text).collect();
            assert_eq!(texts, ["in ok", "in ok", "in overloaded", "in overloaded"]);
        }
    }
    yard.events.check();
}
