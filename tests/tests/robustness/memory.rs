//! CC-4: the memory of results is bounded, per batch, session and engine, and given back once.

use crate::{SECOND, Tasks};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Batch, Call, Confirmations, Effect, Engine, EngineBuilder, ErrorKind, ForkPolicy, Limits, Outcome,
    Reason, ToolContext, ToolError, ToolOutput, ToolSpec, tool_fn,
};
use toolyard_tests::{Log, Recorder, call, scripted};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// An engine with `read`, which returns so many `bytes`, as `end` says, and `write`, which does the same.
struct Library {
    engine: Engine,
    events: Recorder,
    started: Arc<AtomicUsize>,
}

async fn library(bounds: [usize; 3], build: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Library {
    let started = Arc::new(AtomicUsize::new(0));
    let tool = |spec: ToolSpec| {
        let started = started.clone();
        tool_fn(spec, move |args: Value, cx: ToolContext| {
            started.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or(1))).await;
                let text = "x".repeat(usize::try_from(args["bytes"].as_u64().unwrap_or(0)).unwrap());
                match args["end"].as_str() {
                    Some("panic") => panic!("scripted"),
                    Some("fail") => Err(ToolError::execution(text)),
                    Some("numbers") => Ok(ToolOutput::json(vec![1; text.len()].into())),
                    _ if cx.is_cancelled() => Err(ToolError::cancelled(text)),
                    _ => Ok(ToolOutput::text(text)),
                }
            }
        })
    };
    let mut limits = Limits::default();
    [limits.results_batch_bytes_max, limits.results_session_bytes_max, limits.results_engine_bytes_max] =
        bounds;
    let events = Recorder::default();
    let builder =
        Engine::builder().limits(limits).events(events.clone()).confirmations(Confirmations::auto());
    let builder =
        builder.tool(tool(ToolSpec::read("read"))).tool(tool(ToolSpec::write("write").concurrent()));
    Library { engine: build(builder).build().await.unwrap(), events, started }
}

fn calls(tool: &str, count: usize, bytes: usize) -> Vec<Call> {
    let args = json!({"bytes": bytes});
    (0..count).map(|n| Call::new(format!("{tool}{n}"), tool, args.clone())).collect()
}

fn with_key(mut call: Call, key: &str) -> Call {
    call.idempotency_key = Some(key.into());
    call
}

/// How many calls succeeded, how many results had no room, and how many calls did not start for that reason.
fn counts(outcomes: &[Outcome]) -> [usize; 3] {
    let of = |kind: ErrorKind, ran: bool| {
        let has_no_room = |it: &&Outcome| {
            it.error().is_some_and(|it| it.kind == kind && it.reason == Some(Reason::ResultBudget))
        };
        let refused: Vec<_> = outcomes.iter().filter(has_no_room).collect();
        assert!(refused.iter().all(|it| (it.attempts > 0) == ran));
        refused.len()
    };
    let counts = [
        outcomes.iter().filter(|it| it.success()).count(),
        of(ErrorKind::OutputTooLarge, true),
        of(ErrorKind::Overloaded, false),
    ];
    assert_eq!(counts.iter().sum::<usize>(), outcomes.len(), "{outcomes:?}");
    counts
}

/// CC-4: results that fit are kept; one that does not says that its call ran; what has not started is overloaded.
#[tokio::test(start_paused = true)]
async fn a_batch_holds_what_its_bound_allows() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let outcomes = library.engine.session("s").dispatch(calls("read", 10_000, 100 * KIB)).await;
    let [ok, ran, not_started] = counts(&outcomes);
    assert_eq!(ok, 10);
    assert!((1..=20).contains(&ran), "{ran}");
    assert_eq!(library.started.load(Ordering::Relaxed), ok + ran);
    let of = |kind| outcomes.iter().filter_map(Outcome::error).find(|it| it.kind == kind).unwrap();
    let too_large = of(ErrorKind::OutputTooLarge);
    assert!(
        too_large.message.starts_with("the call ran, but there is no room for its result"),
        "{too_large}"
    );
    assert_eq!((too_large.effect, too_large.retryable), (Effect::Failed, true));
    let overloaded = of(ErrorKind::Overloaded);
    assert_eq!((overloaded.effect, overloaded.retryable, overloaded.attempts), (Effect::NotStarted, true, 0));
    assert!(not_started > 9_900);
    library.events.check();
}

/// CC-4: a small result always fits, so a write that has run says so.
#[tokio::test(start_paused = true)]
async fn a_small_result_always_fits() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let mut batch = calls("write", 10, 2 * MIB);
    batch[0].arguments = json!({"bytes": 900, "ms": 50}).into();
    batch[1].arguments = json!({"bytes": MIB - 100}).into(); // as good as all there is
    let outcomes = library.engine.session("s").dispatch(batch).await;
    assert_eq!(counts(&outcomes), [2, 8, 0]);
    let error = outcomes[2].error().unwrap();
    assert_eq!((error.effect, error.retryable), (Effect::Unknown, false));
}

/// V4: a result that has no room is ignored by the breaker of its tool; one over the bound of outputs is a failure.
#[tokio::test(start_paused = true)]
async fn a_result_without_room_opens_no_breaker() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let session = library.engine.session("s");
    for _ in 0..3 {
        let outcomes = session.dispatch(calls("read", 20, 2 * MIB)).await;
        assert_eq!(counts(&outcomes)[1], 20);
    }
    assert_eq!(counts(&session.dispatch(calls("read", 1, 1)).await), [1, 0, 0]);
    let outcomes = session.dispatch(calls("read", 6, 17 * MIB)).await;
    assert!(outcomes.iter().all(|it| it.error().unwrap().reason.is_none()));
    assert_eq!(session.dispatch(calls("read", 1, 1)).await[0].error().unwrap().kind, ErrorKind::CircuitOpen);
}

/// CC-4: a session and its forks share a bound; what has been taken no longer counts; a turn counts until it is dropped.
#[tokio::test(start_paused = true)]
async fn a_session_holds_what_its_bound_allows() {
    let library = library([MIB, 2 * MIB, 512 * MIB], |builder| builder).await;
    let session = library.engine.session("s");
    let batch = || calls("read", 9, 100 * KIB);
    for _ in 0..50 {
        assert_eq!(counts(&session.dispatch(batch()).await), [9, 0, 0]);
    }
    let (one, two) = (session.turn(), session.fork(ForkPolicy::default()).unwrap().turn());
    assert_eq!(counts(&one.dispatch(batch()).await), [9, 0, 0]);
    assert_eq!(counts(&two.dispatch(batch()).await), [9, 0, 0]);
    let [ok, ..] = counts(&session.dispatch(batch()).await);
    assert!(ok < 9, "{ok}");
    // Another session has a bound of its own.
    assert_eq!(counts(&library.engine.session("other").dispatch(batch()).await), [9, 0, 0]);
    drop(one);
    assert_eq!(counts(&session.dispatch(batch()).await), [9, 0, 0]);
    drop(two);
    let unkept = session.turn().without_resend();
    for _ in 0..50 {
        assert_eq!(counts(&unkept.dispatch(batch()).await), [9, 0, 0]);
    }
    assert_eq!(unkept.finished(), []);
    library.events.check();
}

/// CC-4: all sessions share the engine's bound, and one that holds nothing more leaves room at once.
#[tokio::test(start_paused = true)]
async fn an_engine_holds_what_its_bound_allows() {
    let library = library([MIB, 2 * MIB, 3 * MIB], |builder| builder).await;
    let batch = || calls("read", 9, 100 * KIB);
    let turns: Vec<_> = (0..3).map(|n| library.engine.session(&*format!("s{n}")).turn()).collect();
    for turn in &turns {
        assert_eq!(counts(&turn.dispatch(batch()).await), [9, 0, 0]);
    }
    let last = library.engine.session("last");
    let outcomes = last.dispatch(batch()).await;
    assert!(counts(&outcomes)[0] < 9);
    let message = &outcomes.iter().filter_map(Outcome::error).next().unwrap().message;
    assert!(message.contains("all sessions may hold 3145728"), "{message}");
    drop(turns);
    assert_eq!(counts(&last.dispatch(batch()).await), [9, 0, 0]);
}

/// CC-4: whatever becomes of a batch, its room is given back, once.
#[tokio::test(start_paused = true)]
async fn room_is_given_back_whatever_happens() {
    let library = library([MIB, MIB, MIB], |builder| builder).await;
    let session = library.engine.session("s");
    let mixed = || {
        let mut batch = calls("read", 12, 100 * KIB);
        for (n, end) in ["panic", "fail", "numbers"].iter().enumerate() {
            batch[n].arguments = json!({"bytes": 60 * KIB, "end": end}).into();
        }
        batch[5].arguments = json!({"bytes": 60 * KIB, "ms": 500}).into();
        Batch::new(batch)
    };
    for round in 0..40 {
        match round % 4 {
            0 => drop(session.dispatch(mixed()).await),
            // Dropped while some have ended and some run.
            1 => drop(tokio::time::timeout(Duration::from_millis(20), session.dispatch(mixed())).await),
            2 => {
                let turn = session.turn();
                let cancel = async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    turn.cancel();
                };
                drop(tokio::join!(turn.dispatch(mixed()), cancel));
                drop(turn.resend(mixed()).await);
            }
            _ => {
                let batch = session.open_batch();
                mixed().into_iter().for_each(|call| batch.push(call));
                if round % 8 == 3 {
                    drop(batch.finish().await);
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(counts(&session.dispatch(calls("read", 9, 100 * KIB)).await), [9, 0, 0], "{round}");
    }
    library.events.check();
}

/// CC-4: room is given back when the results are taken, also while a handler that was given up holds on to its batch.
#[tokio::test(start_paused = true)]
async fn room_is_given_back_beside_a_zombie() {
    let zombie = |log: &Log| scripted(ToolSpec::read("blocks").blocking().timeout(SECOND), log);
    let log = Log::default();
    let library =
        library([MIB, MIB, MIB], |builder| builder.tool(zombie(&log)).blocking(Arc::new(Tasks))).await;
    let session = library.engine.session("s");
    let mut batch = calls("read", 9, 100 * KIB);
    batch.push(call("z", "blocks", 60_000, "ok"));
    let outcomes = session.dispatch(batch).await;
    assert_eq!(outcomes[9].error().unwrap().kind, ErrorKind::Timeout);
    assert_eq!(counts(&outcomes[..9]), [9, 0, 0]);
    drop(outcomes);
    assert_eq!(counts(&session.dispatch(calls("read", 9, 100 * KIB)).await), [9, 0, 0]);
    library.events.check();
}

/// CC-4: the memory of data counts, not the length of its text: a number is one letter, and takes many bytes.
#[tokio::test(start_paused = true)]
async fn data_counts_by_the_memory_it_takes() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let mut batch = calls("read", 1, 0);
    batch[0].arguments = json!({"bytes": 100_000, "end": "numbers"}).into();
    assert_eq!(counts(&library.engine.session("s").dispatch(batch).await), [0, 1, 0]);
}

/// CC-4: the pieces of a batch that is still being written share its bound.
#[tokio::test(start_paused = true)]
async fn an_open_batch_has_one_bound() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let batch = library.engine.session("s").open_batch();
    for call in calls("read", 40, 100 * KIB) {
        batch.push(call);
        tokio::time::sleep(Duration::from_millis(10)).await; // a piece of its own
    }
    let outcomes = batch.finish().await;
    assert_eq!(counts(&outcomes)[..2], [10, 1]);
    library.events.check();
}

/// ID-6: a result shared under a key takes room in each batch; one that had no room and may run again is not kept.
#[tokio::test(start_paused = true)]
async fn a_shared_result_takes_room_in_each_batch() {
    let library = library([MIB, 128 * MIB, 512 * MIB], |builder| builder).await;
    let session = library.engine.session("s");
    let keyed = |tool: &str, count: usize, bytes: usize| -> Vec<Call> {
        calls(tool, count, bytes).into_iter().map(|call| with_key(call, "k")).collect()
    };
    assert_eq!(counts(&session.dispatch(keyed("read", 20, 100 * KIB)).await)[0], 10);
    assert_eq!(library.started.load(Ordering::Relaxed), 1);
    let outcomes = session.dispatch(keyed("write", 1, 2 * MIB)).await;
    assert_eq!(counts(&outcomes), [0, 1, 0]);
    let again = session.dispatch(keyed("write", 1, 2 * MIB)).await;
    assert_eq!(again[0].error().unwrap().reason, Some(Reason::ResultBudget));
    assert_eq!(library.started.load(Ordering::Relaxed), 2);
    let args = json!({"bytes": 2 * MIB});
    let large = || vec![with_key(Call::new("l", "read", args.clone()), "large")];
    assert_eq!(counts(&session.dispatch(large()).await), [0, 1, 0]);
    assert_eq!(counts(&session.dispatch(large()).await), [0, 1, 0]);
    assert_eq!(library.started.load(Ordering::Relaxed), 4);
}
