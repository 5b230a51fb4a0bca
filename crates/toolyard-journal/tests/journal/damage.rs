//! Files that are cut off, or changed (JR-12).

use crate::scene::{Scene, engine};
use std::{fs, path::Path};
use toolyard::{Call, Drain};
use toolyard_journal::{CallState, Journal, JournalError, Reader, Settings, verify};

const CALLS: u64 = 15;

/// A journal with some calls, closed or not.
async fn written(scene: &Scene, is_closed: bool) -> Journal {
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let session = engine.session("demo");
    for number in 0..CALLS {
        let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(300));
        session.call(Call::new(format!("call_{number}"), "nothing", arguments)).await;
        session.call(Call::new(format!("call_{number}b"), "save", "{}")).await;
    }
    if is_closed {
        engine.shutdown(Drain::default()).await;
        journal.close().unwrap();
    }
    journal
}

/// Reads all that a journal has.
fn read(path: &Path) -> Result<(), JournalError> {
    let reader = Reader::open(path)?;
    reader.epochs()?;
    reader.open_turns()?;
    for session in reader.sessions()? {
        for turn in 1..=2 * CALLS {
            reader.turn(session.session.as_str(), turn)?;
        }
    }
    Ok(())
}

/// JR-12: a file that is cut off, wherever, is refused or said to be damaged, and never read as if it were whole.
#[tokio::test]
async fn a_file_that_is_cut_off_is_never_whole() {
    let scene = Scene::new();
    written(&scene, true).await;
    let whole = fs::read(scene.path()).unwrap();
    let cut = scene.path().with_extension("cut");
    assert!(whole.len() > 20 * 1024);
    for length in (0..whole.len()).step_by(1021).chain([1, 100, 4096, 8192, whole.len() - 1]) {
        fs::write(&cut, &whole[..length]).unwrap();
        let _ = read(&cut); // an error, or what is there
        if let Ok(report) = verify(&cut) {
            assert!(!report.is_whole(), "cut at {length} of {}", whole.len());
        }
    }
}

/// JR-12: whichever bit is changed, reading and verifying end, and most of what is changed is found.
#[tokio::test]
async fn changed_bits_are_refused_or_told() {
    const FLIPS: usize = 300;
    let scene = Scene::new();
    written(&scene, true).await;
    let whole = fs::read(scene.path()).unwrap();
    let changed = scene.path().with_extension("changed");
    let (mut lot, mut found) = (0x2545_f491_4f6c_dd1d_u64, 0);
    for flip in 0..FLIPS {
        // Xorshift: the same places every time. The first ones are those of the header.
        lot ^= lot << 13;
        lot ^= lot >> 7;
        lot ^= lot << 17;
        let place = if flip < 100 { flip } else { usize::try_from(lot >> 16).unwrap() % whole.len() };
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (lot % 8);
        fs::write(&changed, &bytes).unwrap();
        let is_read = read(&changed).is_ok();
        let is_whole = verify(&changed).is_ok_and(|report| report.is_whole());
        found += usize::from(!is_read || !is_whole);
    }
    // SQLite has no sums over its pages: what changes a text into another text is not found.
    assert!(found > FLIPS / 10, "{found} of {FLIPS} found");
}

/// JR-2: a log of SQLite that is torn within its last transaction loses that one alone, which nobody can have been told of.
#[tokio::test]
async fn a_torn_log_loses_what_was_being_written() {
    let scene = Scene::new();
    let _open = written(&scene, false).await;
    let log = |path: &Path| std::path::PathBuf::from(format!("{}-wal", path.display()));
    let (file, whole) = (fs::read(scene.path()).unwrap(), fs::read(log(&scene.path())).unwrap());
    let torn = Scene::new();
    let mut kept = Vec::new();
    for missing in [0, 1, 24, 2000, 4096, 4119, 4120, 4121, 3 * 4120] {
        fs::write(torn.path(), &file).unwrap();
        fs::write(log(&torn.path()), &whole[..whole.len() - missing]).unwrap();
        let journal = Journal::open(torn.path(), Settings::default()).unwrap();
        assert_eq!(verify(torn.path()).unwrap().findings, []);
        let reader = torn.reader();
        let ended = (1..=2 * CALLS).filter(|number| {
            let turn = reader.turn("demo", *number).unwrap();
            turn.is_some_and(|turn| matches!(turn.batches[0].calls[0].state, CallState::Ended(_)))
        });
        kept.push(ended.count());
        drop(reader);
        journal.close().unwrap();
    }
    assert_eq!(kept[0] as u64, 2 * CALLS);
    // Each call's end is a transaction of its own here.
    assert!(kept.iter().all(|kept| *kept as u64 + 2 >= 2 * CALLS), "{kept:?}");
    assert!(kept.windows(2).all(|pair| pair[0] >= pair[1]), "{kept:?}");
}

/// JR-12: what contradicts itself is told, each by its name.
#[tokio::test]
async fn contradictions_are_told() {
    let scene = Scene::new();
    written(&scene, true).await;
    let found = |sql: &str| {
        let copy = scene.path().with_extension("copy");
        fs::copy(scene.path(), &copy).unwrap();
        let db = rusqlite::Connection::open(&copy).unwrap();
        db.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        db.close().unwrap();
        let report = verify(&copy).unwrap();
        (report.is_whole(), report.findings.first().map(ToString::to_string).unwrap_or_default())
    };
    let (_, gone) = found("DELETE FROM batch_rows WHERE number = 3");
    assert_eq!(gone, "a row of call_rows belongs to one of batch_rows that is not there");
    let (_, fewer) = found("UPDATE batch_rows SET calls = 2 WHERE number = 3");
    assert_eq!(fewer, "batch 3 of session demo has 1 calls of 2");
    let (_, unattempted) = found("DELETE FROM attempt_rows WHERE rowid = 1");
    assert_eq!(unattempted, "call 0 of batch 2 of session demo has run, without a recorded attempt");
    let listed = "UPDATE listed_until SET batch = (SELECT max(id) FROM batch_rows);";
    let (_, unlisted) = found(&format!("{listed} DELETE FROM listed_rows WHERE number = 3"));
    assert_eq!(unlisted, "batch 3 of session demo is not in the list of its session's batches");
    let (_, stale) = found(&format!("{listed} UPDATE listed_rows SET turn = 77 WHERE number = 3"));
    assert_eq!(stale, unlisted);
    for (sql, what) in [
        ("DELETE FROM listed_until", "it is not said up to which batch it goes"),
        ("UPDATE listed_until SET batch = 100000", "it is said to go beyond the last batch"),
        ("DROP TRIGGER batch_gone", "a trigger is missing"),
    ] {
        assert_eq!(found(sql), (false, format!("the list of sessions' batches: {what}")));
    }
    let (_, of_none) = found("INSERT INTO listed_rows VALUES (1, 1, 1, 700)");
    assert_eq!(of_none, "a row of listed_rows belongs to one of batch_rows that is not there");
    let (_, sessionless) = found("DELETE FROM session_rows");
    assert_eq!(sessionless, "a row of batch_rows belongs to one of session_rows that is not there");
    let (_, noted) = found("UPDATE meta SET value = '7'");
    assert_eq!(noted, "the schema's version is 1, and noted as '7'");
    let later = "INSERT INTO epoch_rows (pid, durability, started_ms) VALUES (1, 'full', 0)";
    assert_eq!(found(later), (true, "the clock was set back before epoch 2".to_owned()));
}
