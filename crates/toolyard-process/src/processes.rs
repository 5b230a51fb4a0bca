//! The handle to the processes of a program.

use crate::{NotStarted, Ran, Report, group::Group};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// All processes of a program that was started: the program itself and all that it starts, as far as its
/// [`Containment`](crate::Containment) covers them. They are watched in a task of its own, until none is left.
///
/// Dropping the handle ends them in the background as [`terminate`](Self::terminate) does (SC-6). When the runtime ends,
/// or this process dies, they are killed at once.
#[derive(Debug)]
#[must_use = "dropping it ends the program"]
pub struct Processes {
    seen: watch::Receiver<Progress>,
    killer: Killer,
    id: Option<u32>,
}

/// Kills the processes of a program, from anywhere: see [`Processes::killer`].
#[derive(Debug, Clone)]
pub struct Killer {
    orders: Orders,
    reach: Reach,
}

/// What is seen of a program.
#[derive(Debug)]
pub(crate) enum Progress {
    Starting,
    Running,
    Ended(Report),
}

/// What is ordered from whoever watches the processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orders {
    /// End all, with grace.
    pub(crate) terminate: CancellationToken,
    /// End all, without.
    pub(crate) kill: CancellationToken,
}

/// How processes are killed directly, so that nobody has to wait for the task that watches them.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// The socket to the helper.
    #[cfg(target_os = "linux")]
    Helper(std::sync::Arc<std::os::unix::net::UnixStream>),
    Group(Group),
}

impl Processes {
    pub(crate) fn new(
        seen: watch::Receiver<Progress>,
        orders: Orders,
        reach: Reach,
        id: Option<u32>,
    ) -> Self {
        Self { seen, killer: Killer { orders, reach }, id }
    }

    /// The process that this process has started, as the system numbers it: the program's helper if it has one, with whose
    /// end all others end, otherwise the program.
    pub fn id(&self) -> Option<u32> {
        self.id
    }

    /// Waits until the program runs, or has run.
    ///
    /// # Errors
    /// Why it did not run.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn started(&mut self) -> Result<(), NotStarted> {
        match self.seen.wait_for(|seen| !matches!(seen, Progress::Starting)).await.as_deref() {
            Ok(Progress::Ended(Report::NotStarted(why))) => Err(why.clone()),
            // An error means that the task was lost; whether it ran is not known then.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Waits until the program and all that it started have ended. When the program itself has ended, the rest is
    /// terminated as by [`terminate`](Self::terminate). What holds its output open is not waited for.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: it may be waited for again, also after its end.
    pub async fn ended(&mut self) -> Report {
        match self.seen.wait_for(|seen| matches!(seen, Progress::Ended(_))).await.as_deref() {
            Ok(Progress::Ended(report)) => report.clone(),
            // The task was lost with its runtime.
            Ok(_) | Err(_) => Report::Ran(Ran::UNKNOWN),
        }
    }

    /// Tells all processes to end: SIGTERM, and SIGKILL for those that are left after
    /// [`TERM_GRACE`](crate::TERM_GRACE). Returns at once.
    pub fn terminate(&self) {
        self.killer.orders.terminate.cancel();
    }

    /// Kills all processes, without grace: [`Killer::kill`].
    pub fn kill(&self) {
        self.killer.kill();
    }

    /// What kills them as well as this handle does, for whoever cannot have it. Dropping a killer ends nothing.
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }
}

impl Killer {
    /// Kills all processes, without grace; does nothing once they have ended. Under a group on unix they have been killed
    /// when this returns, a helper has been told to kill them, which it does also if this process ends now.
    pub fn kill(&self) {
        self.orders.kill.cancel();
        match &self.reach {
            #[cfg(target_os = "linux")]
            Reach::Helper(socket) => {
                // An error means that the helper has gone.
                let _ = socket.shutdown(std::net::Shutdown::Write);
            }
            Reach::Group(group) => group.kill(),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.terminate();
    }
}
