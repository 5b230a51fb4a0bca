//! A program that is killed in the middle of a call, and the journal that it leaves.

use crate::scene::{Scene, engine};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};
use toolyard::{Call, ToolContext, ToolSpec, tool_fn};
use toolyard_journal::{Journal, Settings};

const JOURNAL: &str = "TOOLYARD_JOURNAL_OF_THE_CHILD";

/// A program that has ended one call, works on another, and never ends by itself.
fn started(scene: &Scene) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(JOURNAL, scene.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("works on the call")), "the child has ended");
    child
}

/// JR-4, JR-14: beside a program that writes a journal it can be read, and whoever would write it is told who has it. JR-1:
/// once that program was killed, the list says what it had begun, and pruning keeps it.
#[test]
fn a_killed_program_leaves_an_open_turn() {
    let scene = Scene::new();
    let mut child = started(&scene);
    let before = scene.lines("ls", &["--json"]);
    for (sub, args) in [
        ("prune", ["--older-than", "1d"].as_slice()),
        ("approve", &["5d1f0c9a7be24a60.3.9c41ee07d2b8f315"]),
        ("forget", &["--session", "demo", "--key", "order-17"]),
    ] {
        let held = scene.run(sub, args);
        assert_eq!((held.code, held.stdout.as_str()), (Some(2), ""), "{sub}: {held:?}");
        assert!(held.stderr.contains(&format!("process {}, since ", child.id())), "{sub}: {}", held.stderr);
    }
    child.kill().unwrap();
    child.wait().unwrap();

    assert_eq!(scene.lines("ls", &["--json"]), before);
    let seen: Vec<_> =
        before.iter().map(|turn| (turn["is_open"].as_bool(), turn["attempted"].as_u64())).collect();
    assert_eq!(seen, [(Some(true), Some(1)), (Some(false), Some(0))]);
    let call = scene.call("demo", "b");
    assert_eq!(
        (&call["state"], &call["result"], &call["attempts"][0]["attempt"]),
        (&"attempted".into(), &serde_json::Value::Null, &1.into())
    );
    assert_eq!(scene.run("verify", &[]).code, Some(0));
    assert_eq!(scene.lines("prune", &["--max-size", "1B", "--json"])[0]["batches"], 1);
    assert_eq!(scene.lines("ls", &["--json"]), before[..1]);
}

/// Not a test: the program that the one above kills. It works until then.
#[tokio::test]
#[ignore = "is started by the test of killed programs"]
async fn child() {
    let path = std::env::var_os(JOURNAL).expect("another test starts this and says where the journal is");
    let journal = Journal::open(path, Settings::default()).unwrap();
    let work = tool_fn(ToolSpec::write("work"), |(): (), _: ToolContext| async {
        {
            let mut stdout = std::io::stdout().lock();
            writeln!(stdout, "works on the call").and_then(|()| stdout.flush()).unwrap();
        }
        std::future::pending::<Result<&'static str, toolyard::ToolError>>().await
    });
    let engine = engine(&journal).tool(work).build().await.unwrap();
    let session = engine.session("demo");
    assert!(session.call(Call::new("a", "save", "{}")).await.status.is_ok());
    session.call(Call::new("b", "work", "{}")).await;
}
