//! The agent in Rust of the examples, as a process of its own (AG-1, AG-2). Linux alone, where agents read files.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::Arc};
use toolyard::{Confirmations, Drain, Engine, FsMode, SessionOptions};
use toolyard_agents::{AgentEnd, HostPaths, Means, Place, Profile, Supervisor, SupervisorOptions};

/// The example, built as this test is.
fn example() -> PathBuf {
    let built =
        Command::new(env!("CARGO")).args(["build", "-p", "toolyard-agents", "--example", "words"]).status();
    assert!(built.unwrap().success());
    // Tests lie beside the directory of examples.
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().with_file_name("examples").join("words")
}

/// AG-1, AG-2: it hears its input, reads what it may, and gives its words with its bye.
#[tokio::test]
async fn the_agent_in_rust_reads_notes() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().canonicalize().unwrap();
    std::fs::write(dir.join("a.md"), "aphids on the gooseberries\n").unwrap();
    std::fs::write(dir.join("b.md"), "slugs\n").unwrap();
    let profile = Profile::new(example()).place(Place::Host).tools(["Read"]).fs(FsMode::Read, &dir).unwrap();
    let mut options =
        SupervisorOptions::new(BTreeMap::from([("words".to_owned(), profile)]), Means::default());
    options.directory = dir.clone();
    let supervisor = Supervisor::new(options);
    let engine = Engine::builder().tools(supervisor.tools()).confirmations(Confirmations::auto());
    let engine = engine.events(supervisor.sink()).build().await.unwrap();
    let paths = SessionOptions::default().workspace(Arc::new(HostPaths::from_directory(&dir)));
    let session = engine.open("words", paths).unwrap();
    let input = json!(["a.md", "b.md", "/etc/passwd"]);
    let report = supervisor.start(&session, "words", None, Some(input)).await.unwrap().ended().await;
    let words = json!({"a.md": "gooseberries", "b.md": "slugs", "/etc/passwd": "fs_denied"});
    assert_eq!((report.end, report.result, report.counts.calls), (AgentEnd::Ended, Some(words), 3));
    engine.shutdown(Drain::default()).await;
}
