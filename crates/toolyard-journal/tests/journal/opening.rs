//! Who may write a journal (JR-4, JR-7).

use crate::scene::{Scene, engine};
use std::time::Duration;
use toolyard::{Call, Drain, ErrorKind, Reason};
use toolyard_journal::{Durability, Holder, Journal, JournalError, JournalState, Settings};

/// JR-4: a second opener waits no longer than it is told, and learns who has the journal, since when, and what to do.
#[test]
fn a_second_opener_is_told_who_has_it() {
    let scene = Scene::new();
    let _first = scene.open();
    let settings = Settings::default().lock_wait(Duration::from_millis(50));
    let error = Journal::open(scene.path(), settings).unwrap_err();
    let text = error.to_string();
    let JournalError::Held { holder, .. } = error else { panic!("{text}") };
    if cfg!(unix) {
        let Holder::Process { pid, .. } = holder else { panic!("{holder:?}") };
        assert_eq!(pid, std::process::id());
        assert!(text.contains(&format!("process {pid}, since ")), "{text}");
    }
    assert!(text.contains("give each program a journal of its own"), "{text}");
}

/// JR-4: the lock is the file's, by whatever name it is opened; the lock's own file is no link to another one.
#[cfg(unix)]
#[test]
fn a_link_is_another_name_of_the_file() {
    use std::{fs, os::unix::fs::symlink};
    let scene = Scene::new();
    let first = scene.open();
    let link = scene.path().with_file_name("link.journal");
    symlink(scene.path(), &link).unwrap();
    let at_once = Settings::default().lock_wait(Duration::ZERO);
    let refused = Journal::open(&link, at_once).unwrap_err();
    assert!(matches!(refused, JournalError::Held { .. }), "{refused}");
    first.close().unwrap();
    drop(first);
    assert_eq!(Journal::open(&link, at_once).unwrap().path(), scene.path().canonicalize().unwrap());

    let (other, mine) = (scene.path().with_file_name("other.journal"), scene.path().with_file_name("mine"));
    fs::write(&mine, "not a lock").unwrap();
    symlink(&mine, scene.path().with_file_name("other.journal.lock")).unwrap();
    let refused = Journal::open(&other, at_once).unwrap_err();
    assert!(matches!(refused, JournalError::Io { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "not a lock");
    for none in ["", ":memory:", "/"] {
        Journal::open(none, at_once).unwrap_err();
    }
}

/// JR-4: an opener that waits gets the journal once the other has closed it.
#[test]
fn an_opener_waits_for_the_lock() {
    let scene = Scene::new();
    let first = scene.open();
    let (path, (waits, begun)) = (scene.path(), std::sync::mpsc::channel());
    let second = std::thread::spawn(move || {
        waits.send(()).unwrap();
        Journal::open(path, Settings::default()).map(drop)
    });
    begun.recv().unwrap();
    first.close().unwrap();
    second.join().unwrap().unwrap();
    let epochs = scene.reader().epochs().unwrap();
    assert!(epochs.len() == 2 && epochs[0].ended.is_some());
}

/// JR-4, JR-7: each opening is an epoch, which knows its process, its durability, the start of its machine, and whether it
/// has ended cleanly; and the engine's own.
#[tokio::test]
async fn each_opening_is_an_epoch() {
    let scene = Scene::new();
    let first = Journal::open(scene.path(), Settings::default().durability(Durability::Process)).unwrap();
    let engine = engine(&first).build().await.unwrap();
    engine.session("demo").call(Call::new("call_1", "save", "{}")).await;
    engine.shutdown(Drain::default()).await;
    first.close().unwrap();
    drop(scene.open());
    let third = scene.open();
    let epochs = scene.reader().epochs().unwrap();
    assert_eq!(epochs.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(epochs[0].engine, Some(engine.epoch().to_string()));
    assert_eq!((epochs[0].durability, epochs[1].durability), (Durability::Process, Durability::Full));
    assert!(epochs[0].ended.is_some() && epochs[1].ended.is_none() && epochs[2].ended.is_none());
    assert_eq!(epochs[2].pid, std::process::id());
    assert_eq!(epochs[2].boot_id.is_some(), cfg!(target_os = "linux"));
    drop(third);
}

/// JR-4: a writer whose epoch is not the newest writes nothing more, whatever its lock says.
#[tokio::test]
async fn an_older_epoch_writes_nothing_more() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    assert!(session.call(Call::new("call_1", "save", "{}")).await.status.is_ok());
    let newer = "INSERT INTO epoch_rows (pid, durability, started_ms) VALUES (1, 'full', 0)";
    scene.sql().execute(newer, []).unwrap();
    let refused = session.call(Call::new("call_2", "save", "{}")).await.status.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Internal, Some(Reason::Journal)));
    let JournalState::Stopped(why) = journal.status().state else { panic!("{:?}", journal.status()) };
    assert!(why.contains("another process has opened the journal"), "{why}");
    assert!(scene.reader().turn("demo", 2).unwrap().is_none());
    assert!(matches!(journal.close(), Err(JournalError::Stopped(_))));
}

/// JR-4: opening a journal drops no lock that SQLite's connections in this process have on it. Without them another process
/// that opens and closes the file could remove the log that is being written.
#[cfg(target_os = "linux")]
#[test]
fn opening_drops_no_lock_of_a_reader() {
    use std::os::unix::fs::MetadataExt;
    let scene = Scene::new();
    scene.open().close().unwrap();
    let file = format!(":{} ", std::fs::metadata(scene.path()).unwrap().ino());
    let locks = || {
        // Those of this process: a file on another device may have the same number.
        let own = format!(" READ {} ", std::process::id());
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        all.lines().filter(|lock| lock.contains(&file) && lock.contains(&own)).count()
    };
    // The list comes in parts: where another program locks or unlocks something between two of them, a lock is in both or
    // in neither. A lock that was dropped is in no list.
    let is_listed = || (0..1000).any(|_| locks() == 1);
    let reader = scene.reader();
    assert!(reader.epochs().unwrap().len() == 1 && is_listed());
    let _journal = scene.open();
    assert!(is_listed(), "{} locks", locks());
}

/// Nobody but the owner reads what calls are made of.
#[cfg(unix)]
#[tokio::test]
async fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    engine.session("demo").call(Call::new("call_1", "save", "{}")).await;
    let path = scene.path();
    let files =
        ["", ".lock", ".programs", "-wal", "-shm"].map(|ending| format!("{}{ending}", path.display()));
    let modes = files.map(|file| std::fs::metadata(file).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600; 5]);
}

/// A file that is something else is left as it is.
#[test]
fn other_files_are_refused() {
    let scene = Scene::new();
    std::fs::write(
        scene.path(),
        "a letter, which is no database and longer than the header of one is: 100 bytes long",
    )
    .unwrap();
    let before = std::fs::read(scene.path()).unwrap();
    assert!(Journal::open(scene.path(), Settings::default()).is_err());
    assert_eq!(std::fs::read(scene.path()).unwrap(), before);
    std::fs::remove_file(scene.path()).unwrap();
    scene.sql().execute_batch("CREATE TABLE letters (text)").unwrap();
    let refused = Journal::open(scene.path(), Settings::default()).unwrap_err();
    assert!(matches!(refused, JournalError::NotAJournal { .. }), "{refused}");
}

/// A journal of a newer program is not touched, and the error says so.
#[test]
fn newer_journals_are_refused() {
    let scene = Scene::new();
    scene.open().close().unwrap();
    scene.sql().execute_batch("PRAGMA user_version = 2").unwrap();
    let refused = Journal::open(scene.path(), Settings::default()).unwrap_err();
    assert!(refused.to_string().contains("version 2"), "{refused}");
    assert!(matches!(toolyard_journal::verify(scene.path()), Err(JournalError::Newer { .. })));
}
