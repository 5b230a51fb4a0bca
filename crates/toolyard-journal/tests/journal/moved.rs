//! Files that are taken away while they are written (JR-12).

use crate::scene::{Scene, engine, text};
use std::fs;
use toolyard::{Call, ErrorKind, Reason};
use toolyard_journal::{JournalError, JournalState, verify};

/// Writes until the files are taken away, and what is recorded afterwards; all that was acknowledged is in the first call.
async fn after(scene: &Scene, take_away: impl FnOnce()) {
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    assert!(session.call(Call::new("call_1", "save", "{}")).await.status.is_ok());
    take_away();
    // It is looked at once a millisecond.
    let mut number = 1;
    let refused = loop {
        number += 1;
        assert!(number < 20_000, "nobody notices it");
        if let Err(refused) = session.call(Call::new(format!("call_{number}"), "save", "{}")).await.status {
            break refused;
        }
    };
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Internal, Some(Reason::Journal)));
    assert!(session.call(Call::new("call_0", "look", "{}")).await.status.is_ok());
    let JournalState::Stopped(why) = journal.status().state else { panic!("{:?}", journal.status()) };
    assert!(why.contains("was removed, renamed or replaced") && why.contains("put the file back"), "{why}");
    assert!(matches!(journal.close(), Err(JournalError::Stopped(_))));
}

/// JR-12: a journal that was renamed is not written any more, and goes on once it has its name back.
#[tokio::test]
async fn a_renamed_journal_is_told() {
    let scene = Scene::new();
    let other = scene.path().with_extension("old");
    after(&scene, || fs::rename(scene.path(), &other).unwrap()).await;
    fs::rename(&other, scene.path()).unwrap();
    let journal = scene.open();
    assert_eq!(text(&scene.turn(1).batches[0].calls[0].state), "saved");
    assert_eq!(verify(scene.path()).unwrap().findings, []);
    journal.close().unwrap();
}

/// JR-12: nor is one that was removed, or replaced, or whose log was.
#[tokio::test]
async fn a_removed_or_replaced_journal_is_told() {
    let scene = Scene::new();
    after(&scene, || fs::remove_file(scene.path()).unwrap()).await;
    let scene = Scene::new();
    let (path, copy) = (scene.path(), scene.path().with_extension("copy"));
    fs::write(&copy, "another file").unwrap();
    after(&scene, || fs::rename(&copy, &path).unwrap()).await;
    let scene = Scene::new();
    after(&scene, || fs::remove_file(format!("{}-wal", scene.path().display())).unwrap()).await;
}
