//! The writer: one thread, which writes all that waits as one transaction (JR-2).
//!
//! ```text
//!   take all ─► begin ─► still the newest epoch? ─► apply each ─► commit ─► tell those who wait
//!                 │ disk full, busy: again, with pauses        │ any other failure, or the file is gone: never again
//! ```

mod failure;

use crate::{
    apply::{Fault, Ids, apply, apply_end},
    epoch::{self, EpochId},
    error::JournalError,
    identity::Files,
    lock::Lock,
    op::Op,
    queue::{Job, JournalState, Queue, tell},
    settings::Settings,
    stamp::millis,
};
use failure::Failure;
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
    /// The files that the connection has open.
    pub(crate) files: Files,
    /// Held until the connection is closed.
    pub(crate) lock: Lock,
}

/// What became of a record of a committed group; of one with many ends, how many of them were refused.
type Applied = Result<usize, RecordError>;

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
                "another process has opened the journal {path} since, although this one has its lock: stop one of them, and \
                 see why the file {path}.lock was removed or replaced"
            );
            return Err(Failure::Final(RecordError::new(what)));
        }
        if jobs.is_empty() {
            tx.execute_batch(PROBE)?;
        }
        let now = millis(SystemTime::now());
        let mut applied = Vec::with_capacity(jobs.len());
        for job in jobs {
            applied.push(match &job.op {
                None => Ok(0),
                Some(Op::Ends(ends)) => {
                    let mut refused = 0;
                    for (call, end) in ends.each() {
                        let done = apply_end(&tx, self.epoch, ids, &call, &end, now);
                        refused += usize::from(refusal(done)?.is_err());
                    }
                    Ok(refused)
                }
                Some(op) => refusal(apply(&tx, self.epoch, ids, op, now))?.map(|()| 0),
            });
        }
        tx.commit()?;
        // After the commit, so that whoever is told that a record is durable has it in the file of this name.
        match self.files.gone(now) {
            Some(file) => Err(Failure::Final(moved(&self.path, file))),
            None => Ok(applied),
        }
    }

    fn tell(&self, mut jobs: Vec<Job>, applied: Vec<Applied>) {
        let (mut written, mut lost) = (0, 0);
        for (job, applied) in jobs.iter().zip(&applied) {
            let refused = applied.as_ref().map_or(job.records, |refused| *refused);
            written += if job.op.is_some() { job.records - refused } else { 0 };
            lost += if job.waiter.is_none() { refused } else { 0 };
        }
        self.queue.written(written, lost);
        for (job, applied) in jobs.iter_mut().zip(applied) {
            if let Some(waiter) = job.waiter.take() {
                let _ = waiter.send(applied.map(drop)); // it may have left
            }
        }
        self.queue.emptied(jobs);
    }
}

/// Why a record is refused, if it is: others of its group are written.
fn refusal(applied: Result<(), Fault>) -> Result<Result<(), RecordError>, Failure> {
    match applied {
        Ok(()) => Ok(Ok(())),
        Err(Fault::Refused(why)) => Ok(Err(RecordError::new(why))),
        Err(Fault::Sql(error)) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            let what = "what the record belongs to is not in the journal";
            Ok(Err(RecordError::new(what).caused_by(error)))
        }
        Err(Fault::Sql(error)) => Err(error.into()),
    }
}

fn moved(journal: &Path, file: &Path) -> RecordError {
    let (journal, file) = (journal.display(), file.display());
    RecordError::new(format!(
        "the journal {journal} is not written any more: {file} was removed, renamed or replaced while it was open; stop \
         this program, put the file back if it has another name now ({journal} and {journal}-wal belong together), and \
         start again; if it is gone, so is what was recorded, and another name begins a new journal"
    ))
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
mod tests;
