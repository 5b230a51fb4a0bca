//! The writer: one thread, which writes all that waits as one transaction (JR-2).
//!
//! ```text
//!   take all ─► begin ─► still the newest epoch? ─► apply each ─► commit ─► tell those who wait
//!                 │ disk full, busy: again, with pauses             │ any other failure: never again
//! ```

use crate::{
    apply::{Fault, Ids, apply},
    epoch::{self, EpochId},
    error::JournalError,
    lock::Lock,
    queue::{Job, JournalState, Queue, tell},
    settings::Settings,
    stamp::millis,
};
use rusqlite::{Connection, ErrorCode, TransactionBehavior, config::DbConfig};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use toolyard::RecordError;

/// The first pause before a group is tried again, and the longest.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How long SQLite itself waits for somebody else who has the file. It tries every few milliseconds.
pub(crate) const BUSY_WAIT: Duration = Duration::from_millis(50);
/// What asks whether there is room again while nothing else is to be written: some pages, which are freed at once.
const PROBE: &str = "INSERT OR REPLACE INTO meta VALUES ('probe', printf('%.*c', 16384, 'x'));
    DELETE FROM meta WHERE name = 'probe'";

pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) path: PathBuf,
    pub(crate) epoch: EpochId,
    pub(crate) settings: Settings,
    pub(crate) queue: Arc<Queue>,
    /// Held until the connection is closed.
    pub(crate) lock: Lock,
}

/// Why a group is not committed.
enum Failure {
    /// It may be later.
    Passing(RecordError),
    /// It never is.
    Final(RecordError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
        let is_passing = matches!(error.sqlite_error_code(), Some(DiskFull | DatabaseBusy | DatabaseLocked));
        let what = format!("the journal cannot be written ({error})");
        let record = RecordError::new(what).caused_by(error);
        if is_passing { Self::Passing(record) } else { Self::Final(record) }
    }
}

/// What became of a record of a committed group.
type Applied = Result<(), RecordError>;

impl Writer {
    /// Writes until the queue ends. Whether all was written.
    pub(crate) fn run(mut self, is_clean: impl FnOnce() -> bool) -> Result<(), JournalError> {
        let _told = TellsOfPanics(Arc::clone(&self.queue));
        let mut ids = Ids::default();
        while let Some(jobs) = self.queue.take(self.settings.linger) {
            if let ControlFlow::Break(error) = self.write(jobs, &mut ids) {
                let why = error.to_string();
                self.queue.stop(JournalState::Stopped(why.clone()), &why);
                // What a failed sync has left in the log of SQLite is not to be written over the file.
                let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
                return Err(JournalError::Stopped(why));
            }
        }
        let ended = if is_clean() { self.end() } else { Ok(()) };
        self.queue.stop(JournalState::Closed, "the journal is closed");
        let Self { db, path, lock, .. } = self;
        let closed =
            db.close().map_err(|(_, error)| JournalError::sqlite(&path, "closing the journal")(error));
        drop(lock);
        ended.and(closed)
    }

    fn end(&mut self) -> Result<(), JournalError> {
        let failed = JournalError::sqlite(&self.path, "ending the epoch");
        // Nobody waits for the writer any more but its owner.
        let _ = self.db.busy_timeout(Duration::from_secs(1));
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate);
        let ended = tx.and_then(|tx| {
            // A newer epoch's writer has the file.
            if epoch::is_newest(&tx, self.epoch)? {
                epoch::end(&tx, self.epoch)?;
            }
            tx.commit()
        });
        ended.map_err(failed)
    }

    /// Writes a group, however often that takes.
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, and a disk takes real time")]
    fn write(&mut self, mut jobs: Vec<Job>, ids: &mut Ids) -> ControlFlow<RecordError> {
        let (began, mut pause) = (Instant::now(), PAUSE);
        loop {
            match self.commit(&jobs, ids) {
                Ok(applied) => {
                    self.tell(jobs, applied);
                    return ControlFlow::Continue(());
                }
                Err(Failure::Final(error)) => {
                    tell(jobs.into_iter().filter_map(|job| job.waiter), &error);
                    return ControlFlow::Break(error);
                }
                Err(Failure::Passing(error)) => {
                    ids.clear();
                    let is_late = began.elapsed() >= self.settings.retry_for;
                    if is_late {
                        self.queue.fail(&mut jobs, &error);
                    }
                    let is_closing = self.queue.pause(pause);
                    if is_closing && is_late {
                        tell(jobs.into_iter().filter_map(|job| job.waiter), &error);
                        return ControlFlow::Break(error);
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    fn commit(&mut self, jobs: &[Job], ids: &mut Ids) -> Result<Vec<Applied>, Failure> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !epoch::is_newest(&tx, self.epoch)? {
            let path = self.path.display();
            let what = format!(
                "another process has opened the journal {path} since, although this one has its lock"
            );
            return Err(Failure::Final(RecordError::new(what)));
        }
        if jobs.is_empty() {
            tx.execute_batch(PROBE)?;
        }
        let now = millis(SystemTime::now());
        let mut applied = Vec::with_capacity(jobs.len());
        for job in jobs {
            applied.push(match job.op.as_ref().map_or(Ok(()), |op| apply(&tx, self.epoch, ids, op, now)) {
                Ok(()) => Ok(()),
                Err(Fault::Refused(why)) => Err(RecordError::new(why)),
                Err(Fault::Sql(error))
                    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
                {
                    Err(RecordError::new("what the record belongs to is not in the journal").caused_by(error))
                }
                Err(Fault::Sql(error)) => return Err(error.into()),
            });
        }
        tx.commit()?;
        Ok(applied)
    }

    fn tell(&self, jobs: Vec<Job>, applied: Vec<Applied>) {
        let written =
            jobs.iter().zip(&applied).filter(|(job, applied)| job.op.is_some() && applied.is_ok()).count();
        let lost = jobs
            .iter()
            .zip(&applied)
            .filter(|(job, applied)| job.waiter.is_none() && applied.is_err())
            .count();
        self.queue.written(written, lost);
        for (job, applied) in jobs.into_iter().zip(applied) {
            if let Some(waiter) = job.waiter {
                let _ = waiter.send(applied); // it may have left
            }
        }
    }
}

/// Lets no record wait for a writer that has panicked.
struct TellsOfPanics(Arc<Queue>);

impl Drop for TellsOfPanics {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "the journal's writer has panicked";
            self.0.stop(JournalState::Stopped(why.to_owned()), why);
        }
    }
}

/// Opens the connection that writes.
pub(crate) fn connect(path: &Path) -> Result<Connection, JournalError> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)
        .map_err(JournalError::sqlite(path, "opening the journal"))?;
    db.busy_timeout(Duration::from_secs(1)).map_err(JournalError::sqlite(path, "opening the journal"))?;
    Ok(db)
}

#[cfg(test)]
mod tests {
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
        let writer = Writer { db, path, epoch, settings, queue: Arc::clone(&queue), lock };
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
        let sessions =
            crate::Reader::open(&path).and_then(|reader| reader.sessions()).expect("it can be read");
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
}
