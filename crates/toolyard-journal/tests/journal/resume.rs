//! JR-5 to JR-10: an engine goes on from the journal of the one before. The journal is compared with a model that keeps the
//! same records in memory.

use crate::{
    both::{Both, both, life},
    scene::Scene,
};
use toolyard::{Call, ForkPolicy, Outcome, Recorder, SubAgents as _, ToolSpec};
use toolyard_tests::{Ledger, Yard, call, check_resumed, keyed, known_calls, mixed_calls, shape, yard};

/// I5, JR-1, JR-5, JR-8: wherever an engine ends, the next one finds in the journal what the model finds, no call that had
/// ended runs again or changes its result, and what changes something starts at most once.
#[tokio::test]
async fn the_journal_knows_what_the_model_knows() {
    for records in 0.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = life(&first).await;
        let session = yard.engine.session("s");
        let is_over = tokio::select! {
            _ = session.dispatch(mixed_calls()) => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = life(&second).await;
        let before = known_calls(&second);
        let open = yard.engine.open_turns().unwrap();
        assert_eq!(
            open.is_empty(),
            before.values().all(|call| call.end.is_some()),
            "after {records} records"
        );
        if let Some(turn) = open.first() {
            let resumed = yard.engine.session("s").resume(turn.turn).await.unwrap();
            let outcomes = resumed.finish().await.concat();
            check_resumed(records, &before, &yard.log.started(), &outcomes);
            assert!(yard.engine.open_turns().unwrap().is_empty());
        }
        second.journal.close().unwrap();
        assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
        let third = life(&both(&scene, &model, usize::MAX)).await;
        assert!(third.engine.open_turns().unwrap().is_empty());
        third.engine.session("s");
        if is_over {
            assert!(records >= 20, "{records}");
            return;
        }
    }
}

/// JR-5, JR-10: agents, nested calls, cancels and keys are found in the journal as in the model.
#[tokio::test]
async fn agents_cancels_and_keys_are_found() {
    for records in 0.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = life(&first).await;
        let session = yard.engine.session("s");
        let ada = session.fork(ForkPolicy::default().name("ada")).unwrap();
        let unnamed = ada.fork(ForkPolicy::default()).unwrap();
        let turn = session.turn();
        let work = async {
            let of_turn = turn.dispatch(vec![
                call("a", "serial", 1, "ok"),
                keyed("k", call("b", "serial", 1, "ok")),
                call("c", "read", 1, "ok"),
            ]);
            let cancel = async {
                tokio::task::yield_now().await;
                turn.cancel_call("c");
            };
            let of_ada = ada.dispatch(vec![keyed("k", call("d", "concurrent", 1, "fail"))]);
            let of_unnamed = unnamed.dispatch(vec![call("e", "concurrent", 1, "ok")]);
            tokio::join!(of_turn, cancel, of_ada, of_unnamed);
            session.cancel();
        };
        let is_over = tokio::select! {
            () = work => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = life(&second).await;
        let session = yard.engine.session("s");
        for open in yard.engine.open_turns().unwrap() {
            let agent = match open.agent.as_str() {
                "root" => session.clone(),
                "root/ada" => session
                    .sub_agent("ada")
                    .unwrap_or_else(|| session.fork(ForkPolicy::default().name("ada")).unwrap()),
                _ => continue,
            };
            let past = second.turn(&open.session, open.turn).unwrap().unwrap();
            let calls = past.batches.into_iter().flat_map(|batch| batch.calls);
            let cancelled: Vec<_> =
                calls.filter(|it| it.is_cancelled && it.end.is_none()).map(|it| it.call.id).collect();
            let outcomes = agent.resume(open.turn).await.unwrap().finish().await.concat();
            let was_cancelled = |it: &&Outcome| cancelled.contains(&it.call_id);
            let run = outcomes.iter().filter(was_cancelled).filter(|it| it.success()).count();
            assert_eq!(run, 0, "{}", shape(&outcomes));
        }
        second.journal.close().unwrap();
        assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
        if is_over {
            assert!(records > 10, "{records}");
            return;
        }
    }
}

/// JR-5: what a handler had dispatched through a sub-agent, in a turn of its own, ends with it: the handler is not repeated,
/// and nothing of it stays open; an open batch whose calls have ended is closed, and so is a turn that was cancelled.
#[tokio::test]
async fn nothing_stays_open_for_ever() {
    for records in 1.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = with_forks(&first).await;
        let session = yard.engine.session("s");
        let work = async {
            let batch = session.turn().open_batch();
            batch.push(call("pushed", "serial", 1, "ok"));
            let cancelled = session.turn();
            let cancel = async {
                tokio::task::yield_now().await;
                cancelled.cancel();
            };
            let forks =
                session.dispatch(vec![Call::new("forks", "forks", "{}"), call("behind", "serial", 1, "ok")]);
            let of_cancelled =
                cancelled.dispatch(vec![call("x", "serial", 1, "ok"), call("y", "serial", 1, "ok")]);
            tokio::join!(batch.finish(), of_cancelled, cancel, forks);
        };
        let is_over = tokio::select! {
            () = work => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = with_forks(&second).await;
        let session = yard.engine.session("s");
        for open in yard.engine.open_turns().unwrap() {
            let past = second.turn(&open.session, open.turn).unwrap().unwrap();
            let has_dispatched = past
                .batches
                .iter()
                .flat_map(|batch| &batch.calls)
                .any(|it| it.has_dispatched && it.end.is_none());
            let outcomes = session.resume(open.turn).await.unwrap().finish().await.concat();
            let code = outcomes.first().and_then(|it| it.error()).map(|error| error.kind);
            if has_dispatched {
                assert_eq!(code, Some(toolyard::ErrorKind::Interrupted), "after {records} records");
            }
        }
        assert_eq!(yard.engine.open_turns().unwrap(), [], "after {records} records");
        let sql = "SELECT count(*) FROM calls WHERE state != 'ended'";
        let open: i64 = scene.sql().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(open, 0, "after {records} records");
        second.journal.close().unwrap();
        if is_over {
            assert!(records > 15, "{records}");
            return;
        }
    }
}

/// A life with a read whose handler writes through a sub-agent of its own.
async fn with_forks(recorder: &Both) -> Yard {
    let recorder = recorder.clone();
    let forks = |cx: toolyard::ToolContext| async move {
        let agent = cx.fork(ForkPolicy::default())?;
        Ok(shape(&agent.dispatch(vec![call("inner", "serial", 1, "ok")]).await))
    };
    yard(|builder, _| {
        let tool = toolyard::tool_fn(ToolSpec::read("forks"), move |(): (), cx| forks(cx));
        builder.recorder(recorder).tool(tool)
    })
    .await
}

/// JR-5, SM-8: an agent that gets the name of one that was cancelled is not cancelled itself.
#[tokio::test]
async fn a_name_that_was_cancelled_is_used_again() {
    let scene = Scene::new();
    // Two sessions' worth of records, the cancel, the agent's batch.
    let first = both(&scene, &Ledger::default(), 5);
    let yard = life(&first).await;
    let session = yard.engine.session("s");
    let ada = session.fork(ForkPolicy::default().name("ada")).unwrap();
    ada.cancel();
    drop(ada);
    let ada = session.fork(ForkPolicy::default().name("ada")).unwrap();
    tokio::select! {
        _ = ada.dispatch(vec![call("1", "serial", 1, "ok")]) => panic!("its records are cut"),
        () = first.cut.notified() => {}
    }
    first.journal.close().unwrap();
    let calls = scene.reader().turn("s", 1).unwrap().unwrap().batches.remove(0).calls;
    assert!(!calls[0].is_cancelled, "{calls:?}");
}
