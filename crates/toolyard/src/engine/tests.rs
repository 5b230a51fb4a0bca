//! Deaths of actors while a batch is in flight (RA-5, T15). Only tests of this crate can kill an actor, which is why
//! these are not with the other tests of whole engines; their events are checked by the same code.

use super::*;
use crate::{
    ToolContext, ToolSpec,
    pool::{
        PoolState,
        Victim::{self, Pool, Supervisor},
    },
    testing::EventRecorder as Recorder,
    tool::tool_fn,
};
use serde_json::{Value, json};
use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use toolyard_core::{Answer, Call, Confirmations, ErrorKind, Event, Outcome, ToolError};

/// Kills an actor at certain events, counted from the first.
#[derive(Clone)]
struct Killer {
    victim: Victim,
    at: Range<usize>,
    told: Arc<AtomicUsize>,
    pools: Arc<OnceLock<Arc<Pools>>>,
}

impl crate::record::EventSink for Killer {
    fn accept(&self, _: &Event) {
        let at = self.told.fetch_add(1, Ordering::SeqCst);
        if self.at.contains(&at) {
            self.pools.get().expect("no event comes before the engine is there").kill(self.victim);
        }
    }
}

fn scripted(spec: ToolSpec) -> impl toolyard_core::ToolFactory {
    tool_fn(spec, |args: Value, _: ToolContext| async move {
        tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap())).await;
        if args["fails"] == true { Err(ToolError::execution("no")) } else { Ok("ok") }
    })
}

struct Yard {
    engine: Engine,
    events: Recorder,
    told: Arc<AtomicUsize>,
}

async fn yard(victim: Victim, at: Range<usize>) -> Yard {
    let (events, pools) = (Recorder::default(), Arc::new(OnceLock::new()));
    let killer = Killer { victim, at, told: Arc::default(), pools: pools.clone() };
    let told = killer.told.clone();
    let engine = Engine::builder()
        .tool(scripted(ToolSpec::read("read")))
        .tool(scripted(ToolSpec::write("serial")))
        .tool(scripted(ToolSpec::write("concurrent").concurrent()))
        .confirmations(Confirmations::auto())
        .approver(Answer::allow("ada"))
        .events(events.clone())
        .events(killer);
    let engine = engine.build().await.unwrap();
    pools.set(engine.pools.clone()).ok().unwrap();
    Yard { engine, events, told }
}

/// The batch of T3.
fn t3() -> Vec<Call> {
    let calls = [
        ("R1", "read", 30),
        ("R2", "read", 10),
        ("S1", "serial", 10),
        ("S2", "serial", 10),
        ("C1", "concurrent", 20),
        ("C2", "concurrent", 10),
        ("R3", "read", 10),
    ];
    let call =
        |(id, tool, ms): (&str, &str, u64)| Call::new(id, tool, json!({"ms": ms, "fails": id == "S1"}));
    calls.map(call).to_vec()
}

fn shape(outcomes: &[Outcome]) -> Vec<(String, Option<ErrorKind>)> {
    let one = |outcome: &Outcome| (outcome.call_id.to_string(), outcome.error().map(|error| error.kind));
    outcomes.iter().map(one).collect()
}

/// The results of T3 when no actor dies, and the number of its events.
async fn calm() -> (Vec<(String, Option<ErrorKind>)>, usize) {
    let calm = yard(Supervisor, 0..0).await;
    let session = calm.engine.session("t15");
    let outcomes = session.dispatch(t3()).await;
    let events = calm.told.load(Ordering::SeqCst);
    assert!(events >= 4 * 7, "{events} events");
    (shape(&outcomes), events)
}

/// The operator's commands while T3 is in flight. Every command takes effect, whatever dies meanwhile.
async fn operate(engine: &Engine) {
    for width in [1, 2, 20, 7] {
        engine.resize(ToolClass::Read, width).await.unwrap();
        for class in ToolClass::ALL {
            engine.pause(class).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            engine.resume(class).await.unwrap();
        }
        engine.status().await.unwrap();
    }
}

const VICTIMS: [Victim; 4] =
    [Supervisor, Pool(ToolClass::Read), Pool(ToolClass::Serial), Pool(ToolClass::Concurrent)];
const STUCK: Duration = Duration::from_secs(3600);

/// T15: whichever actor dies at whichever event of T3, with or without an operator at work, every call has the same
/// result as without a death, and the operator's commands stay in effect.
#[tokio::test(start_paused = true)]
async fn t15_a_death_of_any_actor_at_any_event_changes_no_result() {
    let (expected, events) = calm().await;
    for victim in VICTIMS {
        for at in 0..events {
            for is_operated in [false, true] {
                let yard = yard(victim, at..at + 1).await;
                let session = yard.engine.session("t15");
                let dispatch = timeout(STUCK, session.dispatch(t3()));
                let operator = async {
                    if is_operated {
                        operate(&yard.engine).await;
                    }
                };
                let (outcomes, ()) = tokio::join!(dispatch, operator);
                let outcomes = outcomes.expect("the batch is not stuck");
                assert_eq!(shape(&outcomes), expected, "{victim:?} died at event {at}");
                let status = yard.engine.status().await.unwrap();
                assert!(status.pools.iter().all(|pool| (pool.running, pool.queued) == (0, 0)), "{status:?}");
                assert_eq!(status[ToolClass::Read].width, if is_operated { 7 } else { 20 });
                let restarts: u32 = status.pools.iter().map(|pool| pool.restarts).sum();
                assert_eq!(
                    restarts,
                    if victim == Supervisor { 3 } else { 1 },
                    "{victim:?} at {at}: {status:?}"
                );
                yard.engine.shutdown(Drain::default()).await;
                yard.events.check();
            }
        }
    }
}

/// T15, SC-8: whichever actor dies at whichever event while T3 is drained, every call has one result and the drain
/// completes.
#[tokio::test(start_paused = true)]
async fn t15_a_death_of_any_actor_in_a_drain_holds_nobody_up() {
    for victim in VICTIMS {
        let mut at = 0;
        loop {
            let yard = yard(victim, at..at + 1).await;
            let session = yard.engine.session("t15");
            let drain = async {
                tokio::time::sleep(Duration::from_millis(15)).await;
                yard.engine.shutdown(Drain::default()).await
            };
            let both = async { tokio::join!(session.dispatch(t3()), drain) };
            let (outcomes, report) = timeout(STUCK, both).await.expect("the drain comes to its end");
            let ran = |outcome: &&Outcome| outcome.success();
            assert_eq!((outcomes.len(), outcomes.iter().filter(ran).count(), report.abandoned), (7, 2, 0));
            let refused = outcomes.iter().filter_map(Outcome::error);
            assert!(
                refused.map(|error| error.kind).all(|kind| kind == ErrorKind::ShuttingDown),
                "{victim:?} at {at}"
            );
            yard.engine.status().await.unwrap_err();
            yard.events.check();
            at += 1;
            if at >= yard.told.load(Ordering::SeqCst) {
                break;
            }
        }
    }
}

/// RA-5: the fourth death within a minute, at whichever event of T3, fails the engine: every call has one result,
/// which is `internal` for those that had not started and for every later call.
#[tokio::test(start_paused = true)]
async fn t15_a_fourth_death_fails_the_engine_and_every_call_with_it() {
    let (_, events) = calm().await;
    for victim in VICTIMS {
        for at in 0..events - 4 {
            let yard = yard(victim, at..at + 4).await;
            let session = yard.engine.session("t15");
            let outcomes = timeout(STUCK, session.dispatch(t3())).await.expect("the batch is not stuck");
            assert_eq!(outcomes.len(), 7);
            // A supervisor that has stopped is not notified of further deaths.
            while yard.engine.status().await.is_ok() {
                yard.engine.pools.kill(victim);
            }
            for outcome in outcomes.iter().filter(|outcome| outcome.attempts == 0) {
                assert_eq!(outcome.error().unwrap().kind, ErrorKind::Internal, "{victim:?} at {at}");
            }
            let later = session.dispatch(t3()).await;
            assert!(later.iter().all(|outcome| outcome.error().unwrap().kind == ErrorKind::Internal));
            let failed =
                ToolClass::ALL.map(|class| yard.engine.core.leases.get(class).state == PoolState::Failed);
            assert_eq!(failed, ToolClass::ALL.map(|class| victim == Supervisor || victim == Pool(class)));
            yard.engine.shutdown(Drain::default()).await;
            yard.events.check();
        }
    }
}
