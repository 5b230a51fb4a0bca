//! The engine as its sessions hold it.

use crate::{
    agent::{Numbers, PreparedOptions, Services},
    call::{
        attempt::{Attempt, Backend, Runners},
        batch::BatchState,
        batch_ends::BatchEnds,
        session::SessionCore,
        stop::Stop,
    },
    record::{Past, RecordError},
};
use foldhash::HashMap;
use parking_lot::{Mutex, MutexGuard};
use std::{
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use toolyard_core::SessionId;

/// The engine as its sessions hold it: what its calls need, where they run, and the sessions.
pub(crate) struct EngineCore {
    pub(crate) services: Arc<Services>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) runners: Arc<Runners<Attempt>>,
    pub(crate) batch_ends: BatchEnds,
    sessions: Mutex<Sessions>,
    /// Whether a drain has begun, of which no session need know yet.
    draining: AtomicBool,
    opened: AtomicU64,
    /// How many sessions were opened that nobody had named.
    unnamed: AtomicU64,
}

impl Deref for EngineCore {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.services
    }
}

impl Drop for EngineCore {
    fn drop(&mut self) {
        self.runners.close();
        self.no_more_questions();
    }
}

/// The open sessions, by name.
#[derive(Default)]
struct Sessions {
    open: HashMap<SessionId, NamedSession>,
    stopped: Option<Stop>,
}

/// The entry of a session name.
#[derive(Default)]
struct NamedSession {
    core: Weak<SessionCore>,
    numbers: Arc<Numbers>,
    /// Sessions of this name that have not announced their end: the open one, and those that are closing.
    unannounced: usize,
}

impl EngineCore {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock()
    }

    pub(crate) fn new(services: Services, backend: Arc<dyn Backend>, runners: Arc<Runners<Attempt>>) -> Self {
        Self {
            services: Arc::new(services),
            backend,
            runners,
            batch_ends: BatchEnds::default(),
            sessions: Mutex::default(),
            draining: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            unnamed: AtomicU64::new(0),
        }
    }

    /// Returns the open session of this name, or opens one; and whether it did. The options are read and dropped
    /// outside of the lock: they may hold the last handle of another session, and any code of the embedder.
    pub(crate) fn open(
        self: &Arc<Self>,
        id: SessionId,
        options: impl FnOnce(&Services) -> PreparedOptions,
    ) -> (Arc<SessionCore>, bool) {
        let (core, opened) = match self.open_session(&id) {
            Some(core) => (core, false),
            None => {
                let options = options(self);
                let past = self.past_of(&id, &options);
                self.open_with(id, options, past)
            }
        };
        core.record_opening();
        core.announce(core.recovered());
        // Read after the session is known by its name: a stop finds it there, or it finds the stop here.
        let stopped = self.sessions().stopped;
        if let Some(why) = stopped {
            core.stop(why);
        }
        (core, opened)
    }

    /// What earlier lives of the engine have left under this name (JR-10). Nobody has used the name of a session that
    /// nobody has named.
    fn past_of(&self, id: &SessionId, options: &PreparedOptions) -> Option<Result<Past, RecordError>> {
        let recording = self.recorder.as_ref().filter(|recording| recording.outlives_engine())?;
        options.is_named.then(|| recording.read(|recorder| recorder.past(id)))
    }

    /// A name for a session that nobody has named (SM-8).
    pub(crate) fn unnamed_id(&self) -> SessionId {
        let number = self.unnamed.fetch_add(1, Ordering::Relaxed) + 1;
        SessionId::from(format!("session-{}-{number}", self.epoch))
    }

    /// The open session of this name.
    pub(crate) fn open_session(&self, id: &SessionId) -> Option<Arc<SessionCore>> {
        self.sessions().open.get(id)?.core.upgrade()
    }

    /// Opens a session, unless another caller has just opened it. Returns whether it did.
    fn open_with(
        self: &Arc<Self>,
        id: SessionId,
        options: PreparedOptions,
        past: Option<Result<Past, RecordError>>,
    ) -> (Arc<SessionCore>, bool) {
        let mut unused = Some(options); // dropped after the lock is released
        let mut sessions = self.sessions();
        let named = sessions.open.entry(id.clone()).or_default();
        if let Some(core) = named.core.upgrade() {
            return (core, false);
        }
        let options = unused.take().expect("the options are still there");
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let core = SessionCore::open(self, number, id, options, named.numbers.clone());
        named.core = Arc::downgrade(&core);
        named.unannounced += 1;
        // Under the lock, so that nobody has the session before it knows what it has done.
        match &past {
            None => {}
            Some(Ok(past)) => core.go_on_from(past),
            Some(Err(_)) => core.stop(Stop::Unread),
        }
        drop(sessions);
        if let Some(Err(error)) = past {
            self.log_unrecorded(
                "a session takes no calls, because what it has done before cannot be read",
                &error,
            );
        }
        (core, true)
    }

    /// A session has announced its end. After the last one of its name, the name is free again and its event numbers
    /// restart.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut sessions = self.sessions();
        let Some(named) = sessions.open.get_mut(session) else { return };
        named.unannounced -= 1;
        if named.unannounced == 0 {
            sessions.open.remove(session);
        }
    }

    pub(crate) fn open_sessions(&self) -> Vec<Arc<SessionCore>> {
        let mut sessions: Vec<_> =
            self.sessions().open.values().filter_map(|named| named.core.upgrade()).collect();
        sessions.sort_unstable_by_key(|session| session.root());
        sessions
    }

    /// The live batches of all open sessions; some may have finished.
    pub(crate) fn batches(&self) -> Vec<Arc<BatchState>> {
        self.open_sessions().iter().flat_map(|session| session.batches()).collect()
    }

    /// A drain begins: what arrives from now on ends with it (SM-10). Set before anything is refused.
    pub(crate) fn begin_drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Whether a drain has begun.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Stops every batch, current and future.
    pub(crate) fn stop(&self, why: Stop) {
        self.sessions().stopped.get_or_insert(why);
        self.open_sessions().iter().for_each(|session| session.stop(why));
    }
}
