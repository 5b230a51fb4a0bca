//! The journal as its owner holds it.

use crate::{
    epoch,
    error::JournalError,
    expire, file,
    identity::Files,
    listing,
    lock::Lock,
    past::Lookup,
    prune,
    queue::{JournalState, JournalStatus, Queue},
    schema,
    settings::Settings,
    writer::{BUSY_WAIT, Writer, connect},
};
use parking_lot::Mutex;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, JoinHandle},
};
use toolyard::event::Epoch;

/// A journal that is open for writing. Clones are the same journal.
///
/// It is the recorder of one engine: once a second one is built with it, every record of both fails. When the last clone is
/// dropped, the writer's thread still writes what was given, as long as the process lives, and the epoch counts as unclean;
/// [`close`](Self::close) waits for that, and ends it cleanly.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.journal");
/// use toolyard::{Call, Confirmations, Drain, Engine, ToolContext, ToolSpec, tool_fn};
/// use toolyard_journal::{CallState, Journal, Reader, Settings};
///
/// let journal = Journal::open(&path, Settings::default())?;
/// let save = tool_fn(ToolSpec::write("save"), |(): (), _: ToolContext| async { Ok("saved") });
/// let engine = Engine::builder().tool(save).confirmations(Confirmations::auto()).recorder(journal.clone());
/// let engine = engine.build().await?;
/// engine.session("demo").call(Call::new("call_1", "save", "{}")).await;
///
/// let turn = Reader::open(&path)?.turn("demo", 1)?.expect("its call is recorded");
/// assert!(matches!(turn.batches[0].calls[0].state, CallState::Ended(_)));
///
/// engine.shutdown(Drain::default()).await;
/// journal.close()?; // the end of this life of the engine is a clean one
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Journal {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) queue: Arc<Queue>,
    pub(crate) lookup: Lookup,
    pub(crate) settings: Settings,
    path: PathBuf,
    /// The engine whose recorder this is.
    pub(crate) engine: OnceLock<Epoch>,
    /// Whether a second engine has begun with it.
    pub(crate) is_shared: AtomicBool,
    is_clean: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<Result<(), JournalError>>>>,
}

impl Journal {
    /// Opens the journal in this file, which is made if there is none (readable by its owner alone), and begins an epoch
    /// (JR-4). Beside it are `FILE.lock`, and while it is open SQLite's `FILE-wal` and `FILE-shm`.
    ///
    /// Waits, on this thread, while another process has the journal, for at most
    /// [`Settings::lock_wait`].
    ///
    /// # Errors
    /// [`JournalError`]: the file is another process's, is none of a journal, is newer or damaged, is on a file system
    /// of other machines or programs, or cannot be written.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Self, JournalError> {
        let path = &*file::resolved(path.as_ref())?;
        file::check_place(path)?;
        let lock = Lock::take(path, settings.lock_wait)?;
        file::make(path)?;
        let mut db = connect(path)?;
        schema::prepare(&mut db, path, settings.durability)?;
        listing::list(&db).map_err(JournalError::sqlite(path, "listing its batches"))?;
        let failed = || JournalError::sqlite(path, "beginning an epoch");
        let epoch = epoch::begin(&db, settings.durability).map_err(failed())?;
        epoch::note_unsure(&db).map_err(failed())?;
        expire::expire(&mut db, epoch, settings.keep_open)
            .map_err(JournalError::sqlite(path, "ending turns that nobody has resumed"))?;
        prune::remove_superseded(&mut db, epoch)
            .map_err(JournalError::sqlite(path, "removing what newer openings stand for"))?;
        // From here on the writer itself pauses while somebody else has the file for longer.
        db.busy_timeout(BUSY_WAIT).map_err(failed())?;
        let queue = Arc::new(Queue::new(settings.queue_records_max, settings.queue_bytes_max));
        let is_clean = Arc::new(AtomicBool::new(false));
        let files = Files::of(path)?;
        let writer = Writer {
            db,
            path: path.to_owned(),
            epoch,
            settings,
            queue: Arc::clone(&queue),
            files,
            lock,
            told_at: None,
        };
        let closes_cleanly = Arc::clone(&is_clean);
        let thread = Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(|| closes_cleanly.load(Ordering::Acquire)))
            .map_err(JournalError::io(path, "starting the writer's thread"))?;
        let inner = Inner {
            queue,
            lookup: Lookup::default(),
            settings,
            path: path.to_owned(),
            engine: OnceLock::new(),
            is_shared: AtomicBool::new(false),
            is_clean,
            thread: Mutex::new(Some(thread)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The file, by the path to which all of its names lead.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// How it fares.
    pub fn status(&self) -> JournalStatus {
        self.inner.queue.status()
    }

    /// Writes what was given, ends the epoch cleanly, and lets go of the file. What is given afterwards fails. Closing it
    /// again, also while it is being closed, waits until it is closed, and says again if not all was written.
    ///
    /// Waits, on this thread, for the writer, if the disk is full or the file busy for [`Settings::retry_for`]: call it when
    /// the engine was shut down, and from a thread that may wait.
    ///
    /// # Errors
    /// [`JournalError::Stopped`] if not all that was given is written; [`JournalError::Sqlite`] if the file cannot be
    /// closed.
    pub fn close(&self) -> Result<(), JournalError> {
        self.inner.is_clean.store(true, Ordering::Release);
        self.inner.lookup.close();
        self.inner.queue.close();
        // Held until the writer has ended, so that nobody takes a journal that is being closed for a closed one.
        let mut thread = self.inner.thread.lock();
        match (thread.take().map(JoinHandle::join), self.status().state) {
            (Some(Ok(written)), _) => written,
            (Some(Err(_)), _) => Err(JournalError::Stopped("the journal's writer has panicked".to_owned())),
            (None, JournalState::Stopped(why)) => Err(JournalError::Stopped(why)),
            (None, _) => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lookup.close();
        self.queue.close();
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.inner.path).field("status", &self.status()).finish()
    }
}
