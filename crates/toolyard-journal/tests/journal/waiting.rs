//! What waits for the file, and what does not (JR-2, JR-3, JR-12).

use crate::scene::{Scene, engine};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Barrier;
use toolyard::{Batch, Call, Drain, ErrorKind, PoolWidths, Reason, ToolContext, ToolSpec, tool_fn};
use toolyard_journal::{Journal, JournalState, Settings};

/// JR-3: while the file cannot be written at all, reads without a key come and go; a write waits, and goes on afterwards.
#[tokio::test]
async fn reads_wait_for_nothing() {
    let scene = Scene::new();
    let journal = scene.open();
    let runs = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&runs);
    let write = tool_fn(ToolSpec::write("write"), move |(): (), _: ToolContext| {
        sees.store(true, Ordering::SeqCst);
        async { Ok("written") }
    });
    let engine = engine(&journal).tool(write).build().await.unwrap();
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let session = engine.session("demo");
    let mut writes = std::pin::pin!(session.call(Call::new("call_0", "write", "{}")));
    for number in 1..=20 {
        assert!(futures::poll!(&mut writes).is_pending());
        let seen = session.call(Call::new(format!("call_{number}"), "look", "{}")).await;
        assert!(seen.status.is_ok() && seen.recorded);
    }
    assert!(!runs.load(Ordering::SeqCst), "a write has begun and is not in the file");
    held.execute_batch("ROLLBACK").unwrap();
    assert!(writes.await.status.is_ok() && runs.load(Ordering::SeqCst));
    engine.shutdown(Drain::default()).await;
    assert_eq!((journal.status().lost, journal.status().waiting), (0, 0));
    assert_eq!(scene.turn(21).batches[0].calls.len(), 1);
}

/// JR-12: while the file stays busy, what changes something is refused and has not run, and reads go on; once it is free
/// the records that have waited are written, and writes run again.
#[tokio::test]
async fn a_busy_file_refuses_writes_until_it_is_free() {
    let scene = Scene::new();
    let settings = Settings::default().retry_for(Duration::from_millis(10));
    let journal = Journal::open(scene.path(), settings).unwrap();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    assert!(session.call(Call::new("call_1", "save", "{}")).await.status.is_ok());
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = session.call(Call::new("call_2", "save", "{}")).await.status.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Internal, Some(Reason::Journal)));
    assert!(matches!(journal.status().state, JournalState::Failing(_)));
    assert!(session.call(Call::new("call_3", "look", "{}")).await.status.is_ok());
    // A session that is opened meanwhile is not lost for good.
    let later = engine.session("later");
    assert!(later.call(Call::new("call_1", "look", "{}")).await.status.is_ok());
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    // The writer goes on by itself; until then writes are refused.
    while !matches!(journal.status().state, JournalState::Writing) {
        tokio::task::yield_now().await;
    }
    assert!(session.call(Call::new("call_4", "save", "{}")).await.status.is_ok());
    assert!(later.call(Call::new("call_2", "save", "{}")).await.status.is_ok());
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert!(toolyard_journal::verify(scene.path()).unwrap().findings.is_empty());
    assert_eq!(scene.reader().open_turns().unwrap(), []);
}

/// JR-2: what waits goes as one transaction. All 64 attempts wait while somebody else has the file, and so do all 64 ends.
#[tokio::test]
async fn calls_in_flight_share_transactions() {
    const CALLS: usize = 64;
    let scene = Scene::new();
    let journal = scene.open();
    let (together, held) = (Arc::new(Barrier::new(CALLS)), Arc::new(Mutex::new(scene.sql())));
    held.lock().unwrap().execute_batch("BEGIN IMMEDIATE").unwrap();
    let holds = Arc::clone(&held);
    let tool = tool_fn(ToolSpec::write("together").concurrent(), move |(): (), _: ToolContext| {
        let (together, holds) = (Arc::clone(&together), Arc::clone(&holds));
        async move {
            if together.wait().await.is_leader() {
                holds.lock().unwrap().execute_batch("BEGIN IMMEDIATE").unwrap();
            }
            together.wait().await;
            Ok("done")
        }
    });
    let engine = engine(&journal).tool(tool).pools(PoolWidths::new(8, CALLS)).build().await.unwrap();
    let session = engine.session("demo");
    let calls = (0..CALLS).map(|n| Call::new(format!("call_{n}"), "together", "{}"));
    let dispatched = session.dispatch(Batch::new(calls.collect()));
    let lets_go = async {
        for _ in ["attempts", "ends"] {
            while journal.status().waiting < CALLS {
                tokio::task::yield_now().await;
            }
            held.lock().unwrap().execute_batch("ROLLBACK").unwrap();
            // Until the writer has them, they still wait.
            while journal.status().waiting >= CALLS {
                tokio::task::yield_now().await;
            }
        }
    };
    let (ended, ()) = tokio::join!(dispatched, lets_go);
    assert!(ended.iter().all(|outcome| outcome.status.is_ok()));
    let status = journal.status();
    assert!(status.records >= 2 * CALLS as u64, "{status:?}");
    // Two of each kind: what the writer held when the rest came, and the rest.
    assert!(status.commits <= 8, "{status:?}");
}
