//! What people and their programs ask of a journal: turns at a glance, gaps, keys to forget, every record (JR-7, JR-10, JR-14).

use crate::scene::{Scene, engine};
use toolyard::{ApprovalDesk, Batch, Call, Confirmations, Dedupe, Drain, Engine};
use toolyard_journal::{Durability, Journal, JournalError, Settings, Which};

/// An engine whose calls ask a desk.
async fn asking(journal: &Journal) -> (Engine, ApprovalDesk) {
    let desk = ApprovalDesk::default();
    let builder = engine(journal).confirmations(Confirmations::default()).approver(desk.clone());
    (builder.build().await.unwrap(), desk)
}

/// Leaves a question about a call open.
async fn left_asked(journal: Journal) {
    let (engine, desk) = asking(&journal).await;
    let session = engine.session("demo");
    let stops = async {
        desk.next().await.unwrap();
        engine.shutdown(Drain::default()).await;
    };
    tokio::join!(session.dispatch(vec![Call::new("call_1", "save", "{}")]), stops);
    journal.close().unwrap();
}

/// JR-14: a call that was not started and that a cancel in the file is about counts as cancelled; the turn is open until its
/// calls have ended, as `open_turns` says.
#[tokio::test]
async fn turns_are_counted_with_the_cancels_that_are_recorded() {
    let scene = Scene::new();
    let journal = scene.open();
    let (engine, _desk) = asking(&journal).await;
    let session = engine.session("demo");
    let stops = async {
        while scene.reader().open_questions().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        engine.shutdown(Drain::default()).await;
    };
    let calls = (1..=3).map(|n| Call::new(format!("call_{n}"), "save", "{}")).collect();
    tokio::join!(session.dispatch(Batch::new(calls)), stops);
    journal.close().unwrap();
    let seen = || {
        let [turn] = scene.reader().turns(&Which::default()).unwrap().try_into().unwrap();
        assert_eq!(turn.is_open, !scene.reader().open_turns().unwrap().is_empty());
        assert_eq!(scene.reader().turns(&Which::default().open()).unwrap().len(), usize::from(turn.is_open));
        assert_eq!(scene.reader().open_questions().unwrap().len() as u64, turn.open_questions);
        (turn.not_started, turn.cancelled, turn.open_questions, turn.is_open)
    };
    assert_eq!(seen(), (3, 0, 3, true));
    let sql = |sql: &str| scene.sql().execute_batch(sql).unwrap();
    let cancel = "INSERT INTO cancel_rows (session, agent, what, turn, given_ms) VALUES (1, 'root', 'turn'";
    sql(&format!("{cancel}, 7, 0)"));
    assert_eq!(seen(), (3, 0, 3, true));
    sql("UPDATE call_rows SET cancelled_ms = 1 WHERE place = 0");
    assert_eq!(seen(), (2, 1, 2, true));
    sql(&format!("{cancel}, 1, 0)"));
    assert_eq!(seen(), (0, 3, 0, true)); // its calls have no ends yet
    assert!(scene.reader().turns(&Which::default().of_session("other")).unwrap().is_empty());
}

/// JR-9, JR-14: a question that is asked again under its id, because what it is about has changed since it was answered, is
/// open.
#[tokio::test]
async fn an_answer_to_what_was_asked_before_answers_nothing() {
    let scene = Scene::new();
    left_asked(scene.open()).await;
    let open = || {
        let turns = scene.reader().turns(&Which::default()).unwrap();
        assert_eq!(scene.reader().open_questions().unwrap().len() as u64, turns[0].open_questions);
        turns[0].open_questions
    };
    let answer = |digest: &str| {
        let sql = "INSERT OR REPLACE INTO answer_rows SELECT call, request, coalesce(?1, digest), 'allow', NULL, NULL, NULL,
                   NULL, 'approver', asked_ms, NULL FROM question_rows";
        scene.sql().execute(sql, [Some(digest).filter(|it| !it.is_empty())]).unwrap();
    };
    assert_eq!(open(), 1);
    answer(&"0".repeat(64));
    assert_eq!(open(), 1);
    answer("");
    assert_eq!(open(), 0);
}

/// JR-7: records may be missing from the last one on that an unclean epoch of `process` has, once the machine has started
/// again, whatever a later epoch adds to its rows.
#[tokio::test]
async fn a_gap_begins_with_the_last_record() {
    let scene = Scene::new();
    left_asked(Journal::open(scene.path(), Settings::default().durability(Durability::Process)).unwrap())
        .await;
    scene.open().close().unwrap();
    assert_eq!(scene.reader().gaps().unwrap(), []);
    let asked = scene.reader().open_questions().unwrap()[0].asked;
    scene
        .sql()
        .execute_batch(
            "UPDATE epoch_rows SET boot_id = 'one', ended_ms = NULL WHERE id = 1;
             UPDATE epoch_rows SET boot_id = 'another', started_ms = (SELECT asked_ms + 1000 FROM question_rows) WHERE id = 2;
             INSERT INTO answer_rows SELECT call, request, digest, 'allow', NULL, NULL, NULL, NULL, 'approver', asked_ms + 2000, NULL
                 FROM question_rows",
        )
        .unwrap();
    let [gap] = scene.reader().gaps().unwrap().try_into().unwrap();
    assert_eq!((gap.epoch, gap.since), (1, asked));
}

/// JR-10: a key is that of all calls of the sessions of this name, in all epochs, also one that a tool has derived; only
/// sessions that somebody has named have any.
#[tokio::test]
async fn keys_are_forgotten_by_the_names_of_sessions() {
    let scene = Scene::new();
    for _ in 0..2 {
        let journal = scene.open();
        let engine = engine(&journal).build().await.unwrap();
        engine.session("demo").call(Call::new("call_1", "save", "{}").idempotency_key("order-17")).await;
        engine.session("other").call(Call::new("call_1", "save", "{}").idempotency_key("order-17")).await;
        engine.shutdown(Drain::default()).await;
        journal.close().unwrap();
    }
    scene
        .sql()
        .execute_batch("UPDATE call_rows SET key = NULL WHERE id = (SELECT min(id) FROM call_rows)")
        .unwrap();
    let journal = scene.open();
    journal.forget("demo", "order-17").await.unwrap();
    journal.forget("demo", "order-17").await.unwrap_err();
    journal.close().unwrap();
    let released = || {
        let db = scene.sql();
        let mut query = db
            .prepare("SELECT session, key_released_ms IS NOT NULL FROM calls ORDER BY epoch, session")
            .unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<Vec<(String, bool)>, _>>().unwrap()
    };
    let expected = [("demo", true), ("other", false), ("demo", true), ("other", false)];
    assert_eq!(released(), expected.map(|(name, is_released)| (name.to_owned(), is_released)));

    // The next engine replays the result of a key that is known, and runs the call of one that was released.
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let call = || Call::new("call_2", "save", "{}").idempotency_key("order-17");
    let dedupe = [engine.session("demo").call(call()).await, engine.session("other").call(call()).await];
    assert_eq!(dedupe.map(|outcome| outcome.dedupe), [Dedupe::Fresh, Dedupe::Replayed]);
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();

    scene.sql().execute_batch("UPDATE session_rows SET is_named = 0").unwrap();
    let journal = scene.open();
    journal.forget("other", "order-17").await.unwrap_err();
    journal.close().unwrap();
}

/// JR-14: an export ends with the error of whoever takes it.
#[tokio::test]
async fn an_export_ends_when_nobody_takes_it() {
    let scene = Scene::new();
    scene.open().close().unwrap();
    scene.open().close().unwrap();
    let mut given = 0;
    let ended = scene.reader().export(None, |_, _| {
        given += 1;
        Err(JournalError::Stopped("enough".to_owned()))
    });
    assert!(matches!(ended, Err(JournalError::Stopped(_))) && given == 1);
}
