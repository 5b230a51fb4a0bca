use super::*;
use crate::{
    op::Op,
    queue::{Faulty, JournalStatus},
    schema,
};
use toolyard::{Durable, SessionId};

/// A journal whose writer is started once its connection was changed.
fn started(
    change: &str,
) -> (tempfile::TempDir, Arc<Queue>, std::thread::JoinHandle<Result<(), JournalError>>) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("agent.journal");
    let settings = Settings::default().retry_for(Duration::from_millis(20));
    let lock = Lock::take(&path, Duration::ZERO).expect("nobody has it");
    crate::file::make(&path).expect("it can be made");
    let mut db = connect(&path).expect("it can be opened");
    schema::prepare(&mut db, &path, settings.durability).expect("it is new");
    let epoch = epoch::begin(&db, settings.durability).expect("it can be written");
    db.busy_timeout(BUSY_WAIT).expect("it can be changed");
    db.execute_batch(change).expect("it can be changed");
    let queue = Arc::new(Queue::new(1000, 1 << 20));
    let files = Files::of(&path).expect("they are there");
    let writer = Writer { db, path, epoch, settings, queue: Arc::clone(&queue), files, lock, told_at: None };
    (directory, queue, std::thread::spawn(move || writer.run(|| true)))
}

fn session(number: usize, bytes: usize) -> Op {
    let session = SessionId::from(format!("session-{number}"));
    Op::Session { session, is_named: true, terms: format!("\"{}\"", "x".repeat(bytes)) }
}

async fn given(queue: &Arc<Queue>, op: Op) -> Result<(), RecordError> {
    waits(queue, op, 0, Faulty::Kept).await
}

fn waits(
    queue: &Arc<Queue>,
    op: Op,
    bytes: usize,
    faulty: Faulty,
) -> impl Future<Output = Result<(), RecordError>> + use<> {
    match queue.wait_for(Some(op), bytes, faulty) {
        Durable::When(durable) => durable,
        Durable::Nothing => panic!("it is waited for"),
    }
}

/// JR-12: when a group has been tried for too long, those who wait for a record behind it are told too; what is refused
/// is not written later, and what has happened is.
#[tokio::test]
async fn what_is_refused_is_not_written_later() {
    let (directory, queue, writer) = started("");
    let path = directory.path().join("agent.journal");
    let held = Connection::open(&path).expect("it can be opened");
    held.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let in_hand = waits(&queue, session(1, 1), 7, Faulty::Refused);
    let mut in_hand = std::pin::pin!(in_hand);
    assert!(futures::poll!(&mut in_hand).is_pending());
    while queue.status().waiting_bytes > 0 {
        tokio::task::yield_now().await;
    }
    let queued = waits(&queue, session(2, 1), 7, Faulty::Refused);
    let happened = waits(&queue, session(3, 1), 7, Faulty::Kept);
    for told in [in_hand.await, queued.await, happened.await] {
        told.expect_err("the file is busy");
    }
    held.execute_batch("ROLLBACK").expect("it was begun");
    drop(held);
    while queue.status().state != JournalState::Writing || queue.status().waiting > 0 {
        tokio::task::yield_now().await;
    }
    queue.close();
    writer.join().expect("the writer does not panic").expect("all is written");
    let sessions = crate::Reader::open(&path).and_then(|reader| reader.sessions()).expect("it can be read");
    assert_eq!(sessions.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["session-3"]);
}

/// JR-12: on a full disk whoever waits is told so within the bound, and what was given is kept; what would start
/// something is refused at once; and closing says that not all is written.
#[tokio::test]
async fn a_full_disk_is_told() {
    let (_directory, queue, writer) = started("PRAGMA max_page_count = 40");
    let mut number = 0;
    let full = loop {
        number += 1;
        if let Err(error) = given(&queue, session(number, 8000)).await {
            break error;
        }
    };
    assert!(number > 2 && full.to_string().contains("full"), "{full}");
    while !matches!(queue.status().state, JournalState::Failing(_)) {
        tokio::task::yield_now().await;
    }
    let waiting = queue.status().waiting;
    assert_eq!(waiting, 1);
    let Durable::When(refused) = queue.wait_for(Some(session(0, 1)), 0, Faulty::Refused) else {
        panic!("it is waited for")
    };
    refused.await.expect_err("nothing can be written");
    given(&queue, session(0, 1)).await.expect_err("nothing can be written");
    assert_eq!(queue.status().waiting, 2, "what has happened is kept, and what would be is not");
    queue.close();
    let stopped = writer.join().expect("the writer does not panic");
    assert!(matches!(stopped, Err(JournalError::Stopped(_))), "{stopped:?}");
}

/// JR-12: after a failure that does not pass, nothing is written any more, and every record fails with it.
#[tokio::test]
async fn after_another_failure_nothing_is_written() {
    let (directory, queue, writer) = started("PRAGMA query_only = ON");
    let first = given(&queue, session(1, 1)).await.expect_err("the connection only reads");
    let stopped = writer.join().expect("the writer does not panic");
    assert!(matches!(stopped, Err(JournalError::Stopped(_))), "{stopped:?}");
    let second = given(&queue, session(2, 1)).await.expect_err("the writer has stopped");
    assert_eq!(first.to_string(), second.to_string());
    let JournalStatus { state, records, .. } = queue.status();
    assert_eq!((state, records), (JournalState::Stopped(first.to_string()), 0));
    assert!(crate::verify(directory.path().join("agent.journal")).is_ok_and(|report| report.is_whole()));
}

/// JR-12: a write that fails, as where a quota is used up, is tried again, and written once it may be. Here it is the size
/// that a file of this process may have: the test runs itself in a process of its own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_write_that_fails_is_tried_again() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::cell::Cell;
    const ALONE: &str = "TOOLYARD_JOURNAL_TEST_ALONE";
    const NAME: &str = "writer::tests::a_write_that_fails_is_tried_again";
    if std::env::var_os(ALONE).is_none() {
        let test = std::env::current_exe().expect("the test runs");
        let mut shell = std::process::Command::new("sh");
        // Without the signal that ends a process whose file grows too large, which SQLite does not expect.
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\""]).arg(test).arg(NAME).env(ALONE, "1");
        let ran = shell.output().expect("there is a shell");
        let told = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let (directory, queue, writer) = started("");
    let given_back = getrlimit(Resource::Fsize);
    let bound = Rlimit { current: Some(400_000), ..given_back };
    setrlimit(Resource::Fsize, bound).expect("less is always allowed");
    // Many give records until one fails, so that groups get more records while they are applied.
    let number = Cell::new(0);
    let gives = || async {
        loop {
            number.set(number.get() + 1);
            if let Err(error) = given(&queue, session(number.get(), 1000)).await {
                break error;
            }
        }
    };
    let failed = futures::future::join_all((0..16).map(|_| gives())).await;
    let number = number.get();
    assert!(number > 32 && failed[0].to_string().contains("disk I/O error"), "{number}, {failed:?}");
    let mut state = queue.status().state;
    while !matches!(state, JournalState::Failing(_)) {
        assert_eq!(state, JournalState::Writing, "it has stopped for good");
        tokio::task::yield_now().await;
        state = queue.status().state;
    }
    setrlimit(Resource::Fsize, given_back).expect("the bound was a soft one");
    while queue.status().state != JournalState::Writing || queue.status().waiting > 0 {
        tokio::task::yield_now().await;
    }
    queue.close();
    writer.join().expect("the writer does not panic").expect("all is written");
    let path = directory.path().join("agent.journal");
    assert!(crate::verify(&path).is_ok_and(|report| report.findings.is_empty()));
    let sessions = crate::Reader::open(&path).and_then(|reader| reader.sessions());
    assert_eq!(sessions.expect("it can be read").len(), number, "also those that had failed");
}
