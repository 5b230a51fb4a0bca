//! A server's first process and all that it started.

use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};
use tokio::process::Child;

/// The processes of a server, while it has some: known to who drives it and to who may have to end it at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// The number of the first, which is that of the group; 0 when there is none.
    number: Arc<AtomicI32>,
}

impl Group {
    /// A process was started, the first of a group.
    pub(super) fn is(&self, child: &Child) {
        let number = child.id().and_then(|number| i32::try_from(number).ok()).unwrap_or_default();
        self.number.store(number, Ordering::SeqCst);
    }

    /// All has been done: the number may be another's by now.
    pub(super) fn is_over(&self) {
        self.number.store(0, Ordering::SeqCst);
    }
}

#[cfg(unix)]
impl Group {
    fn pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(self.number.load(Ordering::SeqCst))
    }

    /// Whether a process of it is there. The first of them counts until it is buried.
    pub(super) fn is_there(&self, child: &mut Child) -> bool {
        let _ = child.try_wait();
        self.pid().is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
        self.signal(rustix::process::Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Kills what there is; nobody asks any more.
    pub(super) fn end_at_once(&self) {
        self.kill();
        self.is_over();
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = self.pid() {
            // An empty group needs none.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

/// Where there are no groups, the first process alone is known; it is killed when it is dropped.
#[cfg(not(unix))]
impl Group {
    pub(super) fn is_there(&self, child: &mut Child) -> bool {
        let is_there = matches!(child.try_wait(), Ok(None));
        if is_there {
            let _ = child.start_kill();
        }
        is_there
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) fn end_at_once(&self) {}
}
