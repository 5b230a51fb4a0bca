//! `approve`, `forget` and `prune`: what writes.

use crate::{
    altered::begun_earlier,
    scene::{Scene, engine},
};
use std::time::Duration;
use toolyard::{ApprovalDesk, Call, Confirmations, Drain};

/// The id of the question about a call.
fn request(scene: &Scene, call: &str) -> String {
    scene.call("demo", call)["questions"][0]["request"].as_str().unwrap().to_owned()
}

/// JR-14, JR-9: a question that was left open is answered once, by its id, and the answer counts when its turn is resumed.
#[tokio::test]
async fn a_question_is_answered() {
    let scene = Scene::new();
    scene.questions(vec![Call::new("a", "save", "{}"), Call::new("b", "look", "{}")], 1).await;
    let request = request(&scene, "a");
    let unknown = scene.run("approve", &["5d1f0c9a7be24a60.3.9c41ee07d2b8f315"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""), "{unknown:?}");
    assert!(
        unknown.stderr.contains(&format!("open: {request} (save, call a of session demo, turn 1)")),
        "{}",
        unknown.stderr
    );

    let done = scene.run("approve", &[&request, "--reason", "seen the diff"]);
    let said = "approved: save, call a of session demo, turn 1; it counts when that turn is resumed\n";
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), said, ""));
    let asked = scene.call("demo", "a")["questions"][0].clone();
    assert_eq!(
        (&asked["decision"], &asked["who"], &asked["reason"]),
        (&"allow".into(), &"ada".into(), &"seen the diff".into())
    );
    let turns = scene.lines("ls", &["--json", "--open"]);
    assert_eq!((&turns[0]["open_questions"], &turns[0]["not_started"]), (&0.into(), &2.into()));

    let again = scene.run("approve", &[&request, "--deny"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("it was answered") && again.stderr.contains("none is"), "{}", again.stderr);
    assert_eq!(scene.call("demo", "a")["questions"][0], asked);

    // The next engine runs the call; nobody would answer it a second time.
    let journal = scene.open();
    let builder = engine(&journal).confirmations(Confirmations::default()).approver(ApprovalDesk::default());
    let engine = builder.build().await.unwrap();
    let outcomes = engine.session("demo").resume(1).await.unwrap().finish().await.concat();
    assert!(outcomes.iter().all(|outcome| outcome.status.is_ok()), "{outcomes:?}");
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    assert_eq!(scene.call("demo", "a")["state"], "ended");
    assert!(scene.lines("ls", &["--json", "--open"]).is_empty());
}

/// JR-14: where several epochs have left questions open, the call whose question it is gets the answer, and only that one.
#[tokio::test]
async fn the_question_tells_whose_call_it_is() {
    let scene = Scene::new();
    for _ in 0..2 {
        scene.questions(vec![Call::new("a", "save", "{}")], 1).await;
    }
    let calls = scene.lines("show", &["--session", "demo", "--json"]);
    let second = calls[1]["questions"][0]["request"].as_str().unwrap();
    let done = scene.run("approve", &[second, "--deny", "--reason", "not on a Friday"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let decisions: Vec<_> = scene
        .lines("show", &["--session", "demo", "--json"])
        .iter()
        .map(|call| (call["epoch"].as_u64(), call["questions"][0]["decision"].as_str().map(str::to_owned)))
        .collect();
    assert_eq!(decisions, [(Some(1), None), (Some(2), Some("deny".to_owned()))]);
}

/// JR-14, ID-3: whoever answers a question answers those that share it, as the engine does.
#[tokio::test]
async fn an_answer_is_that_of_all_who_share_the_question() {
    let scene = Scene::new();
    let call = |id: &str| Call::new(id, "send", "{}").idempotency_key("order-17");
    scene.questions(vec![call("a"), call("b")], 2).await;
    let (first, second) = (request(&scene, "a"), request(&scene, "b"));
    let (lead, shares) = match scene.call("demo", "b")["questions"][0]["shares"].is_null() {
        true => (second, first),
        false => (first, second),
    };
    let refused = scene.run("approve", &[&shares]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(&format!("is asked as {lead}")), "{}", refused.stderr);
    assert_eq!(scene.run("approve", &[&lead]).code, Some(0));
    for id in ["a", "b"] {
        assert_eq!(scene.call("demo", id)["questions"][0]["decision"], "allow", "{id}");
    }
}

/// JR-10: the key of a call that has ended is released once; that of one that is open is not.
#[tokio::test]
async fn a_key_is_released() {
    let scene = Scene::new();
    scene.calls(vec![Call::new("a", "save", "{}").idempotency_key("order-17")]).await;
    scene.questions(vec![Call::new("b", "save", "{}").idempotency_key("order-18")], 1).await;
    let forget = |key: &str| scene.run("forget", &["--session", "demo", "--key", key]);
    let released = || {
        let calls = scene.lines("export", &[]).into_iter().filter(|line| line["kind"] == "call");
        calls.map(|call| !call["key_released_ms"].is_null()).collect::<Vec<_>>()
    };
    assert_eq!(released(), [false, false]);
    let done = forget("order-17");
    let said = "the key order-17 of the session demo is released\n";
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), said, ""));
    assert_eq!(released(), [true, false]);
    for (key, why) in
        [("order-17", "released before"), ("order-19", "no session"), ("order-18", "has not ended")]
    {
        let refused = forget(key);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    assert_eq!(released(), [true, false]);
}

/// JR-13, JR-14: pruning removes what has ended and keeps what is open, and is told what to keep.
#[tokio::test]
async fn what_is_open_is_not_pruned() {
    let scene = Scene::new();
    scene.calls(vec![Call::new("a", "save", "{}")]).await;
    scene.questions(vec![Call::new("b", "save", "{}")], 1).await;
    let old = scene.lines("prune", &["--older-than", "30d", "--json"]);
    assert_eq!(old[0]["batches"], 0);
    let pruned = scene.lines("prune", &["--max-size", "1B", "--json"]);
    assert_eq!(pruned[0]["batches"], 1);
    assert!(pruned[0]["bytes"].as_u64() > Some(0));
    assert_eq!(scene.lines("ls", &["--json"]).len(), 1);
    assert_eq!(scene.call("demo", "b")["state"], "not_started");
    for wrong in [&[][..], &["--older-than", "1.5d"], &["--max-size", "0B"]] {
        let done = scene.run("prune", wrong);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    }
}

/// JR-14: what writes makes no journal where there is none.
#[test]
fn a_name_that_was_mistyped_makes_no_journal() {
    let scene = Scene::new();
    for (sub, args) in [
        ("prune", ["--older-than", "1d"].as_slice()),
        ("approve", &["5d1f0c9a7be24a60.3.9c41ee07d2b8f315"]),
        ("forget", &["--session", "demo", "--key", "order-17"]),
    ] {
        let done = scene.run(sub, args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{sub}: {done:?}");
        assert!(!scene.path().exists(), "{sub}");
    }
}

/// JR-10, JR-14: what answers, forgets and prunes ends no turn, however long that is open: only programs that run turns do.
#[tokio::test]
async fn nothing_expires_for_who_runs_nothing() {
    let scene = Scene::new();
    scene.calls(vec![Call::new("a", "save", "{}").idempotency_key("order-17")]).await;
    scene.questions(vec![Call::new("b", "save", "{}"), Call::new("c", "save", "{}")], 1).await;
    // An epoch that has not taken it up, and began longer ago than turns are kept open.
    scene.calls(vec![Call::new("d", "look", "{}")]).await;
    begun_earlier(&scene.path(), Duration::from_secs(40 * 24 * 3600));
    let is_open = || scene.lines("ls", &["--json", "--open"]).len() == 1;
    let request = request(&scene, "b");
    for (sub, args) in [
        ("prune", ["--older-than", "1000d"].as_slice()),
        ("forget", &["--session", "demo", "--key", "order-17"]),
        ("approve", &[&request]),
    ] {
        let done = scene.run(sub, args);
        assert_eq!(done.code, Some(0), "{sub}: {done:?}");
        assert!(is_open(), "{sub}");
    }
    scene.open().close().unwrap();
    assert!(!is_open(), "a program that runs turns ends it");
}
