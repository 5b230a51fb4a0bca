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
    /// How many callers read its past, in order to open one.
    reading: usize,
    /// How many were opened while somebody has held the name.
    opened: u64,
}

impl NamedSession {
    /// Whether nothing needs the entry any more.
    fn is_free(&self) -> bool {
        self.unannounced == 0 && self.reading == 0
    }
}

/// Somebody reads the past of a name: meanwhile it is counted how often sessions of that name are opened.
struct Reading<'a> {
    engine: &'a EngineCore,
    id: &'a SessionId,
}

impl<'a> Reading<'a> {
    fn of(engine: &'a EngineCore, id: &'a SessionId) -> Self {
        engine.sessions().open.entry(id.clone()).or_default().reading += 1;
        Self { engine, id }
    }

    /// How many were opened so far.
    fn opened(&self) -> u64 {
        self.engine.sessions().open.get(self.id).map_or(0, |named| named.opened)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut sessions = self.engine.sessions();
        let Some(named) = sessions.open.get_mut(self.id) else { return };
        named.reading -= 1;
        if named.is_free() {
            sessions.open.remove(self.id);
        }
    }
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
            None => self.open_anew(id, options(self)),
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

    /// Opens a session that was not open just now, on what its name has done.
    fn open_anew(self: &Arc<Self>, id: SessionId, mut options: PreparedOptions) -> (Arc<SessionCore>, bool) {
        let is_recorded = self.recorder.as_ref().is_some_and(|recording| recording.outlives_engine());
        if !is_recorded || !options.is_named {
            return match self.open_with(id, options, None) {
                Ok(opened) => opened,
                Err(_) => unreachable!("without a past, none is outdated"),
            };
        }
        let reading = Reading::of(self, &id);
        loop {
            let opened = reading.opened();
            let past = self.past_of(&id);
            match self.open_with(id.clone(), options, Some((opened, past))) {
                Ok(opened) => return opened,
                // Another session of this name was opened meanwhile, and is closed: it may have done more.
                Err(unused) => options = *unused,
            }
        }
    }

    /// What earlier lives of the engine have left under this name (JR-10).
    fn past_of(&self, id: &SessionId) -> Result<Past, RecordError> {
        match &self.recorder {
            Some(recording) => recording.read(|recorder| recorder.past(id)),
            None => Ok(Past::default()),
        }
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

    /// Opens a session, unless another caller has just opened it. Returns whether it did; the options, if what was read of
    /// its past is outdated.
    fn open_with(
        self: &Arc<Self>,
        id: SessionId,
        options: PreparedOptions,
        past: Option<(u64, Result<Past, RecordError>)>,
    ) -> Result<(Arc<SessionCore>, bool), Box<PreparedOptions>> {
        let mut unused = Some(options); // dropped after the lock is released
        let mut sessions = self.sessions();
        let named = sessions.open.entry(id.clone()).or_default();
        if let Some(core) = named.core.upgrade() {
            return Ok((core, false));
        }
        let options = unused.take().expect("the options are still there");
        if past.as_ref().is_some_and(|(opened, _)| *opened != named.opened) {
            return Err(Box::new(options));
        }
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let core = SessionCore::open(self, number, id, options, named.numbers.clone());
        named.core = Arc::downgrade(&core);
        named.unannounced += 1;
        named.opened += 1;
        // Under the lock, so that nobody has the session before it knows what it has done.
        match &past {
            None => {}
            Some((_, Ok(past))) => core.go_on_from(past),
            Some((_, Err(_))) => core.stop(Stop::Unread),
        }
        drop(sessions);
        if let Some((_, Err(error))) = past {
            let what = "a session takes no calls, because what it has done before cannot be read";
            self.log_unrecorded(what, &error);
        }
        Ok((core, true))
    }

    /// A session has announced its end. After the last one of its name, the name is free again and its event numbers
    /// restart.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut sessions = self.sessions();
        let Some(named) = sessions.open.get_mut(session) else { return };
        named.unannounced -= 1;
        if named.is_free() {
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
