//! `export`, and its chain of hashes.

use crate::scene::Scene;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard::Call;

fn hash(line: &str) -> String {
    Sha256::digest(line.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JR-14: every record is a line, the same ones each time, with what was given as it was given.
#[tokio::test]
async fn every_record_is_a_line() {
    let scene = Scene::new();
    scene.calls(vec![Call::new("a", "save", r#"{"password": "swordfish"}"#)]).await;
    scene.questions(vec![Call::new("b", "save", "{}")], 1).await;
    let lines = scene.lines("export", &[]);
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    let (of_first, of_second) =
        (["epoch", "session", "batch", "call", "attempt"], ["epoch", "session", "batch", "call", "question"]);
    assert_eq!(kinds, [of_first, of_second].concat());
    let call = &lines[3];
    assert_eq!(
        (&call["arguments"], &call["state"]),
        (&r#"{"password": "swordfish"}"#.into(), &"ended".into())
    );
    assert_eq!((&lines[1]["is_named"], &lines[0]["epoch"]), (&true.into(), &1.into()));
    assert_eq!(scene.lines("export", &[]), lines);
    assert_eq!(scene.lines("export", &["--session", "demo"]), lines);
    let none = scene.run("export", &["--session", "no"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");
}

/// JR-14: with an anchor each line carries the hash of the line before it, and the last line is the hash of the last record.
#[tokio::test]
async fn an_anchor_holds_every_line() {
    let scene = Scene::new();
    scene.calls((0..5).map(|n| Call::new(format!("call_{n}"), "save", "{}")).collect()).await;
    let done = scene.run("export", &["--anchor"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut lines: Vec<&str> = done.stdout.lines().collect();
    let last: Value = serde_json::from_str(lines.pop().unwrap()).unwrap();
    let mut before = "0".repeat(64);
    for line in &lines {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["before"], before.as_str(), "{line}");
        before = hash(line);
    }
    assert_eq!(last, serde_json::json!({"anchor": before, "lines": lines.len()}));
    assert_eq!(scene.run("export", &["--anchor"]).stdout, done.stdout);
}
