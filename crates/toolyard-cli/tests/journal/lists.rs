//! `ls` and `show`.

#[cfg(target_os = "linux")]
use crate::altered::started_since;
use crate::scene::{Scene, engine};
use std::fs;
use toolyard::{Answer, ApprovalDesk, Call, Confirmations, Drain};

/// JR-14: turns are listed newest first, with each call counted once, and `--open` leaves out those that have ended.
#[tokio::test]
async fn turns_are_listed() {
    let scene = Scene::new();
    scene
        .calls(vec![Call::new("a", "save", "{}"), Call::new("b", "fail", "{}"), Call::new("c", "look", "{}")])
        .await;
    scene.questions(vec![Call::new("d", "look", "{}"), Call::new("e", "save", "{}")], 1).await;

    let all = scene.lines("ls", &["--json"]);
    let seen = |line: &serde_json::Value| {
        let number = |name: &str| line[name].as_u64().unwrap();
        (
            number("epoch"),
            number("ended"),
            number("attempted"),
            number("not_started"),
            number("open_questions"),
        )
    };
    assert_eq!(all.iter().map(seen).collect::<Vec<_>>(), [(2, 1, 0, 1, 1), (1, 3, 0, 0, 0)]);
    for (line, (is_open, turn)) in all.iter().zip([(true, 2), (false, 1)]) {
        assert_eq!((line["what"].as_str(), line["session"].as_str()), (Some("turn"), Some("demo")));
        assert_eq!((line["is_open"].as_bool(), line["is_named"].as_bool()), (Some(is_open), Some(true)));
        assert!(
            line["agent"] == "root" && line["turn"] == turn && line["began_ms"].as_u64() > Some(0),
            "{line}"
        );
    }
    assert_eq!(scene.lines("ls", &["--json", "--open"]), all[..1]);
    assert_eq!(scene.lines("ls", &["--json", "--last", "1"]), all[..1]);

    let text = scene.run("ls", &["--last", "1"]).stdout;
    let [heads, row, more] = text.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(heads.starts_with("began (UTC)") && heads.ends_with("open questions"), "{text}");
    assert!(row.contains("demo  ") && row.contains("open") && row.ends_with('1'), "{text}");
    assert_eq!(more, "… and older ones: --last N shows more than 1 turn");
}

/// JR-14, JR-1: what will not be started because a cancel is recorded counts as cancelled, and its turn as closed.
#[tokio::test]
async fn cancelled_calls_are_counted_as_such() {
    let scene = Scene::new();
    let (journal, desk) = (scene.open(), ApprovalDesk::default());
    let builder = engine(&journal).confirmations(Confirmations::default()).approver(desk.clone());
    let engine = builder.build().await.unwrap();
    let session = engine.session("demo");
    let cancels = async {
        desk.next().await.unwrap();
        session.cancel();
    };
    let calls = vec![Call::new("a", "save", "{}"), Call::new("b", "save", "{}")];
    tokio::join!(session.dispatch(calls), cancels);
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    let [turn] = scene.lines("ls", &["--json"]).try_into().unwrap();
    assert_eq!(
        (&turn["cancelled"], &turn["ended"], &turn["open_questions"]),
        (&2.into(), &0.into(), &0.into())
    );
    assert_eq!(turn["is_open"], false);
    assert!(scene.run("show", &["--session", "demo"]).stdout.contains("  cancelled: all of root\n"));
}

/// JR-14, JR-1: `show` tells of every call; a secret in its arguments or its key is shown only to whoever asks for arguments
/// as they are.
#[tokio::test]
async fn calls_are_shown_without_secrets() {
    let scene = Scene::new();
    let saved =
        Call::new("a", "save", r#"{"password": "swordfish", "path": "x"}"#).idempotency_key("order-17");
    scene.calls(vec![saved, Call::new("b", "fail", "{}")]).await;

    let call = scene.call("demo", "a");
    assert_eq!(call["arguments"], serde_json::json!({"password": "[redacted: password]", "path": "x"}));
    assert_eq!(
        (&call["state"], &call["key"], &call["tool"]),
        (&"ended".into(), &"order-17".into(), &"save".into())
    );
    assert_eq!(
        (&call["result"]["ok"], &call["attempts"][0]["side_effects"]),
        (&true.into(), &"write".into())
    );
    let failed = scene.call("demo", "b");
    assert_eq!((&failed["result"]["ok"], &failed["questions"]), (&false.into(), &serde_json::json!([])));
    assert!(failed["result"]["error"].to_string().contains("the disk says no"), "{failed}");

    let text = scene.run("show", &["--session", "demo", "--turn", "1"]).stdout;
    for part in [
        "session demo, turn 1, recorded by epoch 1\n",
        "    a  save  ended\n",
        "    b  fail  ended in an error\n",
        "      result: saved\n",
        "      attempt 1 (write), ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("swordfish"), "{text}");
    let whole = scene.run("show", &["--session", "demo", "--arguments"]).stdout;
    assert!(whole.contains(r#"arguments: {"password":"swordfish","path":"x"}"#), "{whole}");
}

/// JR-14: what is not there is said, and so is a file that is no journal.
#[tokio::test]
async fn what_is_not_there_is_said() {
    let scene = Scene::new();
    let done = scene.run("ls", &[]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{done:?}");
    assert!(!scene.path().exists(), "listing makes no journal");
    scene.calls(vec![Call::new("a", "save", "{}")]).await;
    for (args, why) in [
        (["--session", "no"].as_slice(), "no session no with a turn"),
        (&["--session", "demo", "--turn", "9"], "no turn 9"),
    ] {
        let done = scene.run("show", args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
    fs::write(
        scene.path(),
        "a letter, which is no database, and longer than the header of one is: a hundred bytes, and some",
    )
    .unwrap();
    for sub in ["ls", "verify", "export"] {
        let done = scene.run(sub, &[]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}

/// JR-7: after an epoch of `process` that was not closed and a start of the machine, the list says from when records may be
/// missing.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn records_that_may_be_missing_are_told() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    engine.session("demo").call(Call::new("a", "save", "{}")).await;
    engine.shutdown(Drain::default()).await;
    drop((engine, journal)); // and so not closed
    // Its writer lets go of the lock when all is in the file.
    let lock = fs::File::open(format!("{}.lock", scene.path().display())).unwrap();
    lock.lock().unwrap();
    drop(lock);
    assert_eq!(scene.lines("ls", &["--json"]).len(), 1, "the machine has not started since");

    started_since(&scene.path());
    let last = scene.call("demo", "a")["result"]["ended_ms"].clone();
    let gap = serde_json::json!({"what": "gap", "epoch": 1, "since_ms": last});
    assert_eq!(scene.lines("ls", &["--json"])[0], gap);
    // Whoever opens it next changes nothing about that.
    scene.open().close().unwrap();
    assert_eq!(scene.lines("ls", &["--json"])[0], gap);
    let text = scene.run("ls", &[]).stdout;
    assert!(
        text.starts_with("records from ") && text.contains("of epoch 1 did not close the journal"),
        "{text}"
    );
}

/// JR-14: an answer is shown with who gave it and the arguments that it has put in the place of the call's own.
#[tokio::test]
async fn an_answer_with_other_arguments_is_shown() {
    let scene = Scene::new();
    let (journal, desk) = (scene.open(), ApprovalDesk::default());
    let builder = engine(&journal).confirmations(Confirmations::default()).approver(desk.clone());
    let engine = builder.build().await.unwrap();
    let session = engine.session("demo");
    let person = async {
        let asked = desk.next().await.unwrap();
        let answer = Answer::edit("ada", r#"{"path": "y", "password": "swordfish"}"#).because("y is mine");
        desk.answer(asked.id(), asked.digest(), answer).await.unwrap();
    };
    tokio::join!(session.dispatch(vec![Call::new("a", "save", r#"{"path": "x"}"#)]), person);
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    let call = scene.call("demo", "a");
    let edited = serde_json::json!({"path": "y", "password": "[redacted: password]"});
    assert_eq!((&call["questions"][0]["edited"], &call["arguments"]["path"]), (&edited, &"x".into()));
    let text = scene.run("show", &["--session", "demo"]).stdout;
    assert!(text.contains(": approved, with other arguments, by ada: y is mine\n"), "{text}");
}
