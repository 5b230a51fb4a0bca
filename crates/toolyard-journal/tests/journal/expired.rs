//! JR-10: turns that nobody resumes, and keys, are kept for so long.

use crate::{
    both::{both, life},
    scene::Scene,
};
use std::time::Duration;
use toolyard::{CallError, Dedupe, ErrorKind, Reason, SessionId};
use toolyard_journal::{Journal, Settings};
use toolyard_tests::{Ledger, Yard, call, keyed, yard};

/// Leaves a turn with a write that was started, under a key, and one that was not.
async fn left_open(scene: &Scene) {
    // Session, batch, attempt.
    let first = both(scene, &Ledger::default(), 3);
    let yard = life(&first).await;
    let session = yard.engine.session("s");
    let calls = vec![keyed("k", call("1", "serial", 0, "ok")), call("2", "serial", 0, "ok")];
    tokio::select! {
        _ = session.dispatch(calls) => panic!("its records are cut"),
        () = first.cut.notified() => {}
    }
    first.journal.close().unwrap();
}

fn opened(scene: &Scene, settings: Settings) -> Journal {
    Journal::open(scene.path(), settings).unwrap()
}

async fn over(journal: &Journal) -> Yard {
    let recorder = journal.clone();
    yard(|builder, _| builder.recorder(recorder)).await
}

fn error(end: &Option<Box<toolyard::PastEnd>>) -> &CallError {
    end.as_ref().unwrap().status.as_ref().unwrap_err()
}

/// JR-10: the life after has its chance, however late it comes; in the one after that a turn that nobody has resumed has
/// ended, each call as far as it had come.
#[tokio::test]
async fn a_turn_that_nobody_resumes_ends() {
    let scene = Scene::new();
    left_open(&scene).await;
    let at_once = Settings::default().keep_open(Duration::ZERO);
    let second = opened(&scene, at_once);
    assert_eq!(over(&second).await.engine.open_turns().unwrap().len(), 1);
    second.close().unwrap();
    let patient = opened(&scene, Settings::default());
    assert_eq!(over(&patient).await.engine.open_turns().unwrap().len(), 1);
    patient.close().unwrap();

    let last = opened(&scene, at_once);
    let yard = over(&last).await;
    assert_eq!(yard.engine.open_turns().unwrap(), []);
    let turn = toolyard::Recorder::turn(&last, &SessionId::from("s"), 1).unwrap().unwrap();
    let [started, waited] = [0, 1].map(|at| error(&turn.batches[0].calls[at].end));
    assert_eq!((started.kind, started.reason), (ErrorKind::Interrupted, Some(Reason::Expired)));
    assert_eq!((waited.kind, waited.reason), (ErrorKind::Cancelled, Some(Reason::Expired)));
    // Under its key nothing runs: nobody knows what the first one has done.
    let again = yard.engine.session("s").call(keyed("k", call("3", "serial", 0, "ok"))).await;
    assert_eq!(again.error().map(|error| error.kind), Some(ErrorKind::Interrupted), "{again:?}");
    last.close().unwrap();
}

/// JR-10: a key and its result are kept as long as the settings say.
#[tokio::test]
async fn keys_and_results_are_kept_for_so_long() {
    let scene = Scene::new();
    let write = || keyed("k", call("1", "serial", 0, "ok"));
    let life = async |settings: Settings| {
        let journal = opened(&scene, settings);
        let outcome = over(&journal).await.engine.session("s").call(write()).await;
        journal.close().unwrap();
        (outcome.dedupe, outcome.error().map(|error| error.kind))
    };
    assert_eq!(life(Settings::default()).await, (Dedupe::Fresh, None));
    assert_eq!(life(Settings::default()).await, (Dedupe::Replayed, None));
    // Not that of the replay: the key is as old as its start.
    let no_results = Settings::default().keep_results(Duration::ZERO);
    let expired = life(no_results).await;
    assert!(expired.1.is_some(), "a tombstone: {expired:?}");
    assert_eq!(life(Settings::default().keep_keys(Duration::ZERO)).await, (Dedupe::Fresh, None));
}

/// ID-5, CL-8: a call whose start was recorded, and that has ended before it, has not run: its key is free in the next life
/// too, and it is no call that was started.
#[tokio::test]
async fn a_call_that_ended_before_its_start_has_not_run() {
    let scene = Scene::new();
    left_open(&scene).await;
    let error = CallError::new(ErrorKind::Cancelled, "nobody waits for it").not_started();
    let ending = r#"{"routing":"serial","run":0,"cancel_requested":true,"queued_us":0,"ran_us":0}"#;
    scene
        .sql()
        .execute(
            "UPDATE call_rows SET ended_ms = arrived_ms, status = ?1, code = 'cancelled', ending = ?2, dedupe = 'fresh',
             attempts = 0, sandbox = 'host', was_waited_for = 1",
            [serde_json::to_string(&error).unwrap(), ending.to_owned()],
        )
        .unwrap();
    assert_eq!(scene.reader().started_calls("s").unwrap(), []);
    let second = opened(&scene, Settings::default());
    let yard = over(&second).await;
    let again = yard.engine.session("s").call(keyed("k", call("3", "serial", 0, "ok"))).await;
    assert_eq!((again.success(), again.dedupe), (true, Dedupe::Fresh), "{again:?}");
}
