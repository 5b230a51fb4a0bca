//! The bounds of the queue (JR-2, JR-12), and one engine for each journal.

use crate::scene::{Scene, engine};
use std::time::Duration;
use toolyard::{Call, Durable, Recorder};
use toolyard_journal::{Journal, JournalError, JournalState, Settings};

/// JR-2: a record that finds the queue full fails at once, and says why; what is waiting is written all the same.
#[tokio::test]
async fn a_record_that_finds_the_queue_full_fails_at_once() {
    let scene = Scene::new();
    let journal = Journal::open(scene.path(), Settings::default().queue_max(2, 1 << 20)).unwrap();
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer takes the first group and keeps it; later ones fill the queue.
    let mut waiting = Vec::new();
    let refused = loop {
        let Durable::When(mut given) = journal.flush() else { panic!("a flush is waited for") };
        match futures::poll!(&mut given) {
            std::task::Poll::Pending => waiting.push(given),
            std::task::Poll::Ready(refused) => break refused.unwrap_err(),
        }
    };
    assert!(refused.to_string().contains("queue is full"), "{refused}");
    assert!(waiting.len() >= 2);
    held.execute_batch("ROLLBACK").unwrap();
    for given in waiting {
        given.await.unwrap();
    }
}

/// A journal is one engine's recorder: the records of two could not be told apart, so all fail, with what to do.
#[tokio::test]
async fn a_second_engine_gets_errors() {
    let scene = Scene::new();
    let journal = scene.open();
    let first = engine(&journal).build().await.unwrap();
    assert!(!journal.needs_attempts_of_reads());
    assert!(first.session("before").call(Call::new("call_1", "look", "{}")).await.success());
    let second = engine(&journal).build().await.unwrap();
    assert!(journal.needs_attempts_of_reads());
    for engine in [first, second] {
        for tool in ["save", "look"] {
            let refused = engine.session("demo").call(Call::new("call_1", tool, "{}")).await;
            assert!(refused.status.is_err());
        }
    }
}

/// A closed journal takes nothing, and says so.
#[tokio::test]
async fn a_closed_journal_takes_nothing() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    journal.close().unwrap();
    journal.close().unwrap();
    assert_eq!(journal.status().state, JournalState::Closed);
    assert!(engine.session("demo").call(Call::new("call_1", "save", "{}")).await.status.is_err());
}

/// JR-12: closing a journal whose file is busy waits for it, and loses nothing.
#[tokio::test]
async fn closing_waits_for_a_busy_file() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(session.call(Call::new("call_1", "look", "{}")).await.status.is_ok());
    let closes = journal.clone();
    let closed = std::thread::spawn(move || closes.close());
    // Until it is being closed, it takes records.
    while let Durable::When(mut given) = journal.flush()
        && futures::poll!(&mut given).is_pending()
    {
        tokio::task::yield_now().await;
    }
    held.execute_batch("ROLLBACK").unwrap();
    closed.join().unwrap().unwrap();
    assert_eq!((journal.status().lost, journal.status().state), (0, JournalState::Closed));
    assert!(matches!(scene.turn(1).batches[0].calls[0].state, toolyard_journal::CallState::Ended(_)));
}

/// JR-12: whoever closes a journal that somebody else is closing waits for it too, and learns that not all is written.
#[tokio::test]
async fn closing_it_twice_at_once_waits_twice() {
    let scene = Scene::new();
    let settings = Settings::default().retry_for(Duration::from_millis(200));
    let journal = Journal::open(scene.path(), settings).unwrap();
    let engine = engine(&journal).build().await.unwrap();
    let held = scene.sql();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(engine.session("demo").call(Call::new("call_1", "look", "{}")).await.status.is_ok());
    let closers = [(); 3].map(|()| {
        let closes = journal.clone();
        std::thread::spawn(move || closes.close())
    });
    for closed in closers {
        let told = closed.join().unwrap();
        assert!(matches!(told, Err(JournalError::Stopped(_))), "{told:?}");
    }
    drop(held);
    assert!(matches!(journal.close(), Err(JournalError::Stopped(_))));
}
