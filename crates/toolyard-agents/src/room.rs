//! The groups in which what processes of agents use is counted (AG-10).
//!
//! ```text
//!   the delegated group
//!     └─ of an agent that may start others: its limits ─┬─ its own processes
//!                                                       ├─ those of an agent that it has started
//!                                                       └─ of one of these that may start others, and so on
//! ```
//!
//! Where there is no group, or the profile has no limit of all processes together, there is no group of an agent's own.

#[cfg(target_os = "linux")]
use crate::profile::Place;
use crate::{Means, Profile, models::Quotas};
use std::io;
#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use tokio::{runtime::Handle, task::spawn_blocking};
#[cfg(target_os = "linux")]
use toolyard_process::{Cgroup, SharedGroup};

/// What an agent uses is counted in, and what those that it starts use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// What its processes use.
    pub(crate) room: Room,
    /// What its models answer.
    pub(crate) quotas: Quotas,
}

impl Kept {
    /// That of an agent of this profile, which the agent of `parent` has started.
    ///
    /// # Errors
    /// A group cannot be made, or cannot keep a limit.
    pub(crate) fn of(profile: &Profile, parent: Option<&Self>, means: &Means) -> io::Result<Self> {
        let room = match parent {
            Some(parent) => parent.room.of(profile)?,
            None => Room::of_all(means).of(profile)?,
        };
        Ok(Self { room, quotas: Quotas::of(profile, parent.map(|parent| &parent.quotas)) })
    }
}

/// Where the groups of an agent's processes, and of those that it starts, are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    #[cfg(target_os = "linux")]
    cgroup: Option<Cgroup>,
    /// The group, if it is that of one agent.
    #[cfg(target_os = "linux")]
    _own: Option<Arc<OwnGroup>>,
}

impl Room {
    /// That of agents which no other one has started.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "there are no groups"))]
    fn of_all(means: &Means) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            cgroup: means.cgroup.clone(),
            #[cfg(target_os = "linux")]
            _own: None,
        }
    }

    /// That of an agent within this one: its own if it may start others, and has limits that it shares with them.
    ///
    /// # Errors
    /// The group cannot be made, or cannot keep a limit.
    #[cfg(target_os = "linux")]
    fn of(&self, profile: &Profile) -> io::Result<Self> {
        let shares = profile.place == Place::Process && !profile.may_spawn.is_empty();
        let Some(cgroup) = self.cgroup.as_ref().filter(|_| shares) else { return Ok(self.clone()) };
        Ok(match cgroup.shared(&profile.limits.process)? {
            Some(shared) => {
                Self { cgroup: Some(shared.cgroup().clone()), _own: Some(Arc::new(OwnGroup(Some(shared)))) }
            }
            None => self.clone(),
        })
    }

    /// There are no groups here.
    #[cfg(not(target_os = "linux"))]
    fn of(&self, _: &Profile) -> io::Result<Self> {
        Ok(self.clone())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }
}

/// A group that is removed without keeping a thread of the runtime waiting.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct OwnGroup(Option<SharedGroup>);

#[cfg(target_os = "linux")]
impl Drop for OwnGroup {
    fn drop(&mut self) {
        let group = self.0.take();
        if Handle::try_current().is_ok() {
            drop(spawn_blocking(move || drop(group)));
        }
    }
}
