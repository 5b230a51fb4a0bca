//! Removing what has ended (JR-13).

use crate::scene::{Scene, engine};
use std::time::Duration;
use toolyard::{Batch, Call, Drain, Durable, ForkPolicy, Recorder, SessionOptions};
use toolyard_journal::{Durability, Journal, Keep, Settings, Which, prune, verify};

/// JR-13: by age, what has ended goes, and what is open stays; the room is given back.
#[tokio::test]
async fn what_is_open_stays() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    for number in 0..60 {
        let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(3000));
        session.call(Call::new(format!("call_{number}"), "save", arguments)).await;
    }
    let open = session.open_batch();
    open.push(Call::new("call_60", "save", "{}"));
    let has_call = |turn: toolyard_journal::Turn| !turn.batches[0].calls.is_empty();
    while !scene.reader().turn("demo", 61).unwrap().is_some_and(has_call) {
        let Durable::When(given) = journal.flush() else { panic!("a flush is waited for") };
        given.await.unwrap();
    }
    let kept_all = prune(scene.path(), Keep::default().newer_than(Duration::from_secs(3600))).unwrap();
    assert_eq!(kept_all.batches, 0);
    // Beside the writer. The clock of the test is that of the records: all are older than none.
    scene.sql().execute("UPDATE batch_rows SET arrived_ms = arrived_ms - 10000", []).unwrap();
    // As if the handler of the open call had dispatched one of them.
    let nested = "UPDATE batch_rows SET parent = (SELECT max(id) FROM call_rows) WHERE number = 5";
    scene.sql().execute(nested, []).unwrap();
    let pruned = prune(scene.path(), Keep::default().newer_than(Duration::from_secs(5))).unwrap();
    assert_eq!(pruned.batches, 59);
    assert_eq!(scene.turn(5).batches[0].parent, Some((61, 0)));
    assert!(pruned.bytes < kept_all.bytes / 2, "{pruned:?} of {kept_all:?}");
    assert_eq!(scene.reader().open_turns().unwrap().len(), 1);
    open.push(Call::new("call_61", "save", "{}"));
    assert!(open.finish().await.iter().all(|outcome| outcome.status.is_ok()));
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert_eq!(verify(scene.path()).unwrap().findings, []);
}

/// JR-13: by size, the oldest go first, and no more than must.
#[tokio::test]
async fn the_oldest_go_first() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    for number in 0..100 {
        let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(5000));
        session.call(Call::new(format!("call_{number}"), "save", arguments)).await;
    }
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    let before = prune(scene.path(), Keep::default()).unwrap();
    assert_eq!(before.batches, 0);
    let pruned = prune(scene.path(), Keep::default().at_most(before.bytes / 2)).unwrap();
    assert!(pruned.batches > 0 && pruned.batches < 100 && pruned.bytes <= before.bytes / 2, "{pruned:?}");
    let reader = scene.reader();
    assert!(reader.turn("demo", 1).unwrap().is_none() && reader.turn("demo", 100).unwrap().is_some());
    assert_eq!(verify(scene.path()).unwrap().findings, []);
}

/// JR-13: beside a writer that writes as much as it likes it ends, and what the writer writes is durable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_goes_on_beside_it() {
    const BEFORE: u64 = 100;
    let scene = Scene::new();
    let journal = Journal::open(scene.path(), Settings::default().durability(Durability::Process)).unwrap();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    for number in 0..BEFORE {
        session.call(Call::new(format!("call_{number}"), "save", "{}")).await;
    }
    let path = scene.path();
    // Nothing is small enough: it removes whatever it may.
    let prunes = std::thread::spawn(move || prune(path, Keep::default().at_most(0)));
    let mut number = BEFORE;
    while !prunes.is_finished() {
        let outcome = session.call(Call::new(format!("call_{number}"), "save", "{}")).await;
        assert!(outcome.status.is_ok() && outcome.recorded);
        number += 1;
        assert!(number < 20_000, "it does not end");
    }
    let batches = prunes.join().unwrap().unwrap().batches;
    assert!((BEFORE - 1..=number).contains(&batches), "{batches} of {number}");
    assert!(scene.reader().turn("demo", 1).unwrap().is_none());
    assert!(number == BEFORE || scene.reader().turn("demo", number).unwrap().is_some());
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert_eq!(journal.status().lost, 0);
    assert_eq!(verify(scene.path()).unwrap().findings, []);
}

/// JR-13: a turn that is between two of its batches stays, and goes once another life of the engine has begun.
#[tokio::test]
async fn a_turn_between_two_batches_stays() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    session.call(Call::new("call_0", "save", "{}")).await;
    let turn = session.turn();
    let number = turn.number();
    turn.dispatch(Batch::new(vec![Call::new("call_1", "save", "{}")])).await;
    assert_eq!(prune(scene.path(), Keep::default().at_most(0)).unwrap().batches, 1);
    turn.dispatch(Batch::new(vec![Call::new("call_2", "save", "{}")])).await;
    let kept = |scene: &Scene| scene.reader().turn("demo", number).unwrap().map(|turn| turn.batches.len());
    assert_eq!(kept(&scene), Some(2));
    drop(turn);
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert_eq!(prune(scene.path(), Keep::default().at_most(0)).unwrap().batches, 2);
    assert_eq!(kept(&scene), None);
}

/// JR-13, HT-13: what a session is described by stays until a newer one of its name is described, and its named agents until
/// a newer one has them.
#[tokio::test]
async fn what_a_name_is_described_by_stays() {
    let scene = Scene::new();
    for options in [SessionOptions::default().described("ada's"), SessionOptions::default()] {
        let journal = scene.open();
        let engine = engine(&journal).build().await.unwrap();
        let is_first = scene.reader().turns(&Which::default()).unwrap().is_empty();
        let session = engine.session_with("demo", options);
        if is_first {
            session.fork(ForkPolicy::default().name("kid")).unwrap();
        }
        session.call(Call::new("call_1", "save", "{}")).await;
        engine.shutdown(Drain::default()).await;
        journal.close().unwrap();
    }
    scene.open().close().unwrap();
    assert_eq!(prune(scene.path(), Keep::default().at_most(0)).unwrap().batches, 2);
    let journal = scene.open();
    let past = journal.past_session(&"demo".into()).unwrap().unwrap();
    assert_eq!(past.description.as_deref(), Some("ada's"));
    assert_eq!(past.agents.len(), 1, "{past:?}");
}

/// JR-10, JR-13: the numbers of turns that were removed are not given again, as long as something is left of their name.
#[tokio::test]
async fn numbers_of_what_was_removed_are_not_given_again() {
    let scene = Scene::new();
    for turn in [1, 2] {
        let journal = scene.open();
        let first = engine(&journal).build().await.unwrap();
        first.session("demo").call(Call::new("call_1", "save", "{}")).await;
        assert_eq!(scene.reader().turns(&Which::default()).unwrap()[0].turn, turn);
        first.shutdown(Drain::default()).await;
        journal.close().unwrap();
        assert_eq!(prune(scene.path(), Keep::default().at_most(0)).unwrap().batches, 1);
        // A life that does nothing under the name but open it.
        let journal = scene.open();
        let second = engine(&journal).build().await.unwrap();
        second.session("demo").recorded().await.unwrap();
        second.shutdown(Drain::default()).await;
        journal.close().unwrap();
        assert_eq!(prune(scene.path(), Keep::default().at_most(0)).unwrap().batches, 0);
    }
}

/// JR-10, JR-13: a name that was closed stays closed as long as an older opening of it is left, whoever has opened it since.
#[tokio::test]
async fn a_closed_name_stays_closed() {
    let scene = Scene::new();
    let described = || SessionOptions::default().described("ada's");
    for (options, closes) in [(described(), false), (described(), true), (SessionOptions::default(), false)] {
        let journal = scene.open();
        let engine = engine(&journal).build().await.unwrap();
        let is_first = scene.reader().turns(&Which::default()).unwrap().is_empty();
        let session = engine.session_with("demo", options);
        if is_first {
            session.call(Call::new("call_1", "save", "{}")).await;
        }
        if closes {
            session.cancel();
        }
        session.recorded().await.unwrap();
        engine.shutdown(Drain::default()).await;
        journal.close().unwrap();
    }
    scene.open().close().unwrap();
    let is_closed = || {
        let journal = scene.open();
        let is_closed = journal.past_session(&"demo".into()).unwrap().unwrap().is_cancelled;
        journal.close().unwrap();
        is_closed
    };
    assert!(is_closed());
    assert_eq!(prune(scene.path(), Keep::default()).unwrap().batches, 0);
    assert!(is_closed());
}
