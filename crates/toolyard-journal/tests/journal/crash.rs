//! What a process that is killed leaves behind (JR-1, JR-2).

use crate::scene::{Scene, end, engine};
use std::{
    collections::HashSet,
    fs::OpenOptions,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};
use toolyard::{Call, PoolWidths, ToolContext, ToolSpec, tool_fn};
use toolyard_journal::{CallState, Durability, Journal, Settings, verify};

const JOURNAL: &str = "TOOLYARD_JOURNAL_OF_THE_CHILD";
const SESSIONS: usize = 8;
/// After how many acknowledged results the child is killed.
const ACKNOWLEDGED: usize = 150;

/// JR-1, JR-2: of a process that is killed while it works, the journal is whole, has every result that was given to anybody,
/// and has an attempt for every effect. Nothing is done by the time it says so that it does not know of.
#[test]
fn a_killed_process_has_lost_nothing_that_it_acknowledged() {
    let scene = Scene::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(JOURNAL, scene.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut acknowledged = Vec::new();
    for line in lines {
        // The test's own name may stand before the first one.
        if let Some((_, call)) = line.split_once("acknowledged ") {
            acknowledged.push(call.to_owned());
        }
        if acknowledged.len() == ACKNOWLEDGED {
            child.kill().unwrap(); // what the pipe still has is read
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= ACKNOWLEDGED);

    let report = verify(scene.path()).unwrap();
    assert_eq!(report.findings, []);
    let (mut ended, mut attempted) = (HashSet::new(), HashSet::new());
    let reader = scene.reader();
    for session in reader.sessions().unwrap() {
        for number in 1.. {
            let Some(turn) = reader.turn(session.session.as_str(), number).unwrap() else { break };
            let call = &turn.batches[0].calls[0];
            let id = call.call.id.to_string();
            match &call.state {
                CallState::NotStarted => continue,
                CallState::Attempted { .. } => {}
                CallState::Ended(_) => {
                    let status = end(&call.state).status.as_ref().unwrap();
                    assert_eq!(status.to_text(), format!("did {id}"));
                    ended.insert(id.clone());
                }
            }
            attempted.insert(id);
        }
    }
    let lost: Vec<_> = acknowledged.iter().filter(|id| !ended.contains(*id)).collect();
    assert!(lost.is_empty(), "given and not kept: {lost:?}");
    let effects = std::fs::read_to_string(scene.path().with_extension("effects")).unwrap();
    let unknown: Vec<_> = effects.lines().filter(|id| !attempted.contains(*id)).collect();
    assert!(unknown.is_empty(), "done and not known: {unknown:?}");
    // The next life opens it as it is.
    drop(scene.open());
}

/// Not a test: the process that the one above kills. It works until then.
#[tokio::test]
#[ignore = "is started by the test of killed processes"]
async fn child() {
    let path = std::env::var_os(JOURNAL).expect("another test starts this and says where the journal is");
    // What survives the end of a process is the same for both; without syncs more happens by the time it comes.
    let journal = Journal::open(&path, Settings::default().durability(Durability::Process)).unwrap();
    let effects = std::path::Path::new(&path).with_extension("effects");
    let work = tool_fn(ToolSpec::write("work").concurrent(), move |(): (), cx: ToolContext| {
        let effects = effects.clone();
        async move {
            let id = cx.call_id().to_string();
            let mut effects = OpenOptions::new().append(true).create(true).open(effects).unwrap();
            effects.write_all(format!("{id}\n").as_bytes()).unwrap();
            Ok(format!("did {id}"))
        }
    });
    let widths = PoolWidths::new(8, SESSIONS);
    let engine = engine(&journal).tool(work).pools(widths).build().await.unwrap();
    let work = |session: usize| {
        let session = engine.session(format!("session-{session}"));
        async move {
            for number in 0.. {
                let id = format!("{}.{number}", session.id());
                let outcome = session.call(Call::new(id.as_str(), "work", "{}")).await;
                assert!(outcome.status.is_ok());
                let mut stdout = std::io::stdout().lock();
                // Nobody reads any more: this process is being killed.
                if writeln!(stdout, "acknowledged {id}").and_then(|()| stdout.flush()).is_err() {
                    break;
                }
            }
        }
    };
    futures::future::join_all((0..SESSIONS).map(work)).await;
}
