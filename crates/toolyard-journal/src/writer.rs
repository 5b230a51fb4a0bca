//! The writer: one thread, which writes all that waits as one transaction (JR-2).
//!
//! ```text
//!   take all ─► begin ─► still the newest epoch? ─► apply each ─► commit ─► wake one of those who wait
//!                 │ disk full, busy: again, with    ▲      │       │ any other failure, or the file is gone:
//!                 ▼ pauses                          └ more? ┘       ▼ never again
//! ```
//!
//! Records are applied while others are still being given, so that the writer and its callers work side by side.

mod failure;

use crate::{
    apply::{Fault, Ids, Tables},
    epoch::{self, EpochId},
    error::JournalError,
    identity::Files,
    lock::Lock,
    op::Op,
    queue::{Job, JournalState, Queue},
    schema,
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
/// How long the one who is woken first has to wake the others of its group.
const HANDED_ON: Duration = Duration::from_millis(1);
/// After how many records the writer looks whether that time is over.
const LOOKS_EACH: usize = 64;
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
    /// When the last group was told.
    pub(crate) told_at: Option<Instant>,
}

/// What became of a record of a committed group; of one with many ends, how many of them were refused.
type Applied = Result<usize, RecordError>;

impl Writer {
    /// Writes until the queue ends. Whether all was written.
    pub(crate) fn run(mut self, is_clean: impl FnOnce() -> bool) -> Result<(), JournalError> {
        let _told = TellsOfPanics(Arc::clone(&self.queue));
        let mut ids = Ids::default();
        let mut group = Vec::new();
        while self.begin(&mut group) {
            if let ControlFlow::Break(error) = self.write(&mut group, &mut ids) {
                let why = error.to_string();
                self.queue.stop(JournalState::Stopped(why.clone()), &why);
                // What a failed sync has left in the log of SQLite is not to be written over the file.
                let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
                return Err(JournalError::Stopped(why));
            }
        }
        self.queue.wake_others();
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

    /// Waits for the next group to begin. `false` if nothing more will come.
    fn begin(&self, group: &mut Vec<Job>) -> bool {
        if let Some(told_at) = self.told_at
            && !self.queue.are_woken()
            && !self.queue.is_wanted_until(told_at + HANDED_ON)
        {
            self.queue.wake_others();
        }
        self.queue.begin(self.settings.linger, group)
    }

    /// Writes a group, with what comes while it is applied, however often that takes.
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, and a disk takes real time")]
    fn write(&mut self, group: &mut Vec<Job>, ids: &mut Ids) -> ControlFlow<RecordError> {
        let (began, mut pause) = (Instant::now(), PAUSE);
        let mut is_open = true;
        loop {
            match self.commit(group, ids, is_open.then_some(began)) {
                Ok(applied) => {
                    self.tell(group, applied);
                    return ControlFlow::Continue(());
                }
                Err(Failure::Final(error)) => {
                    self.queue.refuse(group, &error);
                    return ControlFlow::Break(error);
                }
                Err(Failure::Passing(error)) => {
                    is_open = false;
                    ids.clear();
                    self.queue.wake_others();
                    let is_late = began.elapsed() >= self.settings.retry_for;
                    if is_late {
                        self.queue.fail(group, &error);
                    }
                    let is_closing = self.queue.pause(pause);
                    if is_closing && is_late {
                        self.queue.refuse(group, &error);
                        return ControlFlow::Break(error);
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Commits a group; one that is open, since then, with what comes while it is applied.
    fn commit(
        &mut self,
        group: &mut Vec<Job>,
        ids: &mut Ids,
        open_since: Option<Instant>,
    ) -> Result<Vec<Applied>, Failure> {
        wake_late(&self.queue, self.told_at);
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !epoch::is_newest(&tx, self.epoch)? {
            let path = self.path.display();
            let what = format!(
                "another process has opened the journal {path} since, although this one has its lock: stop one of them, and \
                 see why the file {path}.lock was removed or replaced"
            );
            return Err(Failure::Final(RecordError::new(what)));
        }
        if group.is_empty() {
            tx.execute_batch(PROBE)?;
        }
        ids.begin();
        let mut applied = Vec::with_capacity(group.len());
        let mut tables = Tables::new(&tx, self.epoch, ids);
        while applied.len() < group.len() {
            tables.at(millis(SystemTime::now()));
            for job in &group[applied.len()..] {
                if applied.len() % LOOKS_EACH == 0 {
                    wake_late(&self.queue, self.told_at);
                }
                applied.push(apply_job(&mut tables, job)?);
            }
            if let Some(began) = open_since {
                self.queue.add_to(group, began);
            }
        }
        drop(tables);
        // Those whom nobody has woken do not wait for this commit too.
        self.queue.wake_others();
        tx.commit()?;
        // After the commit, so that whoever is told that a record is durable has it in the file of this name.
        match self.files.gone(millis(SystemTime::now())) {
            Some(file) => Err(Failure::Final(moved(&self.path, file))),
            None => Ok(applied),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, and a disk takes real time")]
    fn tell(&mut self, group: &mut Vec<Job>, applied: Vec<Applied>) {
        let (mut written, mut lost, mut failed) = (0, 0, Vec::new());
        for (job, applied) in group.iter().zip(applied) {
            let refused = applied.as_ref().map_or(job.records, |refused| *refused);
            written += if job.op.is_some() { job.records - refused } else { 0 };
            lost += if job.asked.is_none() { refused } else { 0 };
            failed.extend(job.asked.zip(applied.err()));
        }
        self.queue.written(written, lost, &failed);
        self.told_at = Some(Instant::now());
        self.queue.spend(group);
    }
}

/// Wakes those of the last group whom the first has not woken in its time.
fn wake_late(queue: &Queue, told_at: Option<Instant>) {
    if told_at.is_some_and(|told| told.elapsed() >= HANDED_ON) {
        queue.wake_others();
    }
}

/// Applies a record, or the ends of one.
fn apply_job(tables: &mut Tables<'_>, job: &Job) -> Result<Applied, Failure> {
    match &job.op {
        None => Ok(Ok(0)),
        Some(Op::Ends(ends)) => {
            let mut refused = 0;
            ends.try_each(|call, end| {
                refused += usize::from(refusal(tables.ended(call, end))?.is_err());
                Ok::<_, Failure>(())
            })?;
            Ok(Ok(refused))
        }
        Some(op) => Ok(refusal(tables.apply(op))?.map(|()| 0)),
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
    let failed = || JournalError::sqlite(path, "opening the journal");
    db.busy_timeout(Duration::from_secs(1)).map_err(failed())?;
    schema::keep_plans(&db).map_err(failed())?;
    Ok(db)
}

#[cfg(test)]
mod tests;
