//! What waits for the file, and what does not (JR-2, JR-3, JR-12).

use crate::scene::{Scene, engine};
use std::{sync::Arc, time::Duration};
use tokio::sync::Barrier;
use toolyard::{Batch, Call, Drain, ErrorKind, PoolWidths, Reason, ToolContext, ToolSpec, tool_fn};
use toolyard_journal::{Journal, JournalState, Settings};

/// JR-3: while the file cannot be written at all, reads without a key come and go; a write waits, and goes on afterwards.
#[tokio::test]
async fn reads_wait_for_nothing() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let session = engine.session("demo");
    for number in 0..20 {
        let seen = session.call(Call::new(format!("call_{number}"), "look", "{}")).await;
        assert!(seen.status.is_ok() && seen.recorded);
    }
    let commits = journal.status().commits;
    let mut write = std::pin::pin!(session.call(Call::new("call_20", "save", "{}")));
    assert!(futures::poll!(&mut write).is_pending());
    assert_eq!(journal.status().commits, commits, "somebody else has the file");
    held.execute_batch("ROLLBACK").unwrap();
    assert!(write.await.status.is_ok());
    engine.shutdown(Drain::default()).await;
    assert_eq!((journal.status().lost, journal.status().waiting), (0, 0));
    assert_eq!(scene.turn(20).batches[0].calls.len(), 1);
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
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    // The writer goes on by itself; until then writes are refused.
    while !matches!(journal.status().state, JournalState::Writing) {
        tokio::task::yield_now().await;
    }
    assert!(session.call(Call::new("call_4", "save", "{}")).await.status.is_ok());
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert!(toolyard_journal::verify(scene.path()).unwrap().findings.is_empty());
    assert_eq!(scene.reader().open_turns().unwrap(), []);
}

/// JR-2: calls in flight share transactions. All 64 are started and ended together, and their 128 records that are waited
/// for take a few commits.
#[tokio::test]
async fn calls_in_flight_share_transactions() {
    const CALLS: usize = 64;
    let scene = Scene::new();
    let journal = scene.open();
    let together = Arc::new(Barrier::new(CALLS));
    let tool = tool_fn(ToolSpec::write("together").concurrent(), move |(): (), _: ToolContext| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            Ok("done")
        }
    });
    let widths = PoolWidths::new(8, CALLS);
    let engine = engine(&journal).tool(tool).pools(widths).build().await.unwrap();
    let calls = (0..CALLS).map(|n| Call::new(format!("call_{n}"), "together", "{}"));
    let ended = engine.session("demo").dispatch(Batch::new(calls.collect())).await;
    assert!(ended.iter().all(|outcome| outcome.status.is_ok()));
    let status = journal.status();
    assert!(status.records >= 2 * CALLS as u64, "{status:?}");
    assert!(status.records / status.commits >= 16, "{status:?}");
}
