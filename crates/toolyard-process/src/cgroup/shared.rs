//! A group of several programs, whose limits they keep together.

use super::{Cgroup, GroupLimits, enable, own::Own};
use crate::{LastingLimits, Limit};
use std::{io, path::Path};

/// How many processes are in the group of a program beside its own: the one that supervises it from inside.
const BESIDE: u64 = 1;

/// A group for a program and for those that it has others start, each in a group of its own within this one: what any of
/// them uses counts against the limits of this one.
///
/// ```text
///   a delegated group
///     └─ SharedGroup    limits of all of them
///          ├─ the group of the first program, with its limits
///          ├─ the group of the second
///          └─ a SharedGroup of the third's own, and so on
/// ```
///
/// A program that needs memory when there is none left within these limits ends one of them, the one whose process has the
/// most. A process or thread more than there may be is not started, whoever wants it.
///
/// Dropping it ends what is still in it, and removes it; that may wait a second.
///
/// # Examples
/// ```no_run
/// use toolyard_process::{Cgroup, Confinement, LastingLimits};
/// let cgroup = Cgroup::open("/sys/fs/cgroup/toolyard")?;
/// let limits = LastingLimits { memory: Some(1 << 30), ..LastingLimits::default() };
/// if let Some(shared) = cgroup.shared(&limits)? {
///     let first = Confinement::new().lasting(limits, Some(shared.cgroup()))?;
///     let second = Confinement::new().lasting(LastingLimits::default(), Some(shared.cgroup()))?;
///     # let _ = (first, second);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedGroup {
    own: Own,
    cgroup: Cgroup,
}

impl SharedGroup {
    /// The group in which programs get groups of their own.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }
}

impl Cgroup {
    /// A group in this one for programs that share these limits; `None` if no limit among them is one of all processes
    /// together. Beside the processes that `processes` counts there is room for one, which supervises the first program;
    /// those of further programs count.
    ///
    /// # Errors
    /// The group cannot be made, or cannot keep a limit.
    pub fn shared(&self, limits: &LastingLimits) -> io::Result<Option<SharedGroup>> {
        let memory = limits.memory.filter(|_| self.lacks(Limit::Memory).is_none());
        let processes = limits.processes.map(u64::from).filter(|_| self.lacks(Limit::Processes).is_none());
        if memory.is_none() && processes.is_none() {
            return Ok(None);
        }
        self.share(GroupLimits { memory, cpu_time: None, processes }).map(Some)
    }

    fn share(&self, limits: GroupLimits) -> io::Result<SharedGroup> {
        let own = Own::shared(&self.path, &limits, BESIDE)?;
        let (no_memory, no_processes) = (self.inherited(&own, "memory"), self.inherited(&own, "pids"));
        let path = self.path.join(own.name());
        let cgroup = Self { path, no_memory, no_processes };
        Ok(SharedGroup { own, cgroup })
    }

    /// Why groups in one of these cannot keep a limit by this controller.
    fn inherited(&self, own: &Own, controller: &str) -> Option<String> {
        let ours = if controller == "memory" { &self.no_memory } else { &self.no_processes };
        ours.clone().or_else(|| enable(own.directory(), controller).err())
    }
}

impl SharedGroup {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.cgroup.path()
    }

    /// Ends all processes in it, those of all programs.
    pub fn kill(&self) {
        self.own.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delegated group, where there is one.
    fn delegated() -> Option<Cgroup> {
        std::env::var_os("TOOLYARD_CGROUP").map(|path| Cgroup::open(path).unwrap())
    }

    /// AG-10: without a limit of all processes together there is nothing to share.
    #[test]
    fn a_group_is_shared_for_limits_of_all_processes() {
        let lacking = Cgroup {
            path: "/no/such/group".into(),
            no_memory: Some("its cgroup.controllers lacks 'memory'".to_owned()),
            no_processes: None,
        };
        let limits = LastingLimits { memory: Some(1 << 20), open_files: Some(3), ..LastingLimits::default() };
        assert!(lacking.shared(&limits).unwrap().is_none(), "a limit that is not kept is told elsewhere");
        let limits = LastingLimits { processes: Some(3), ..limits };
        assert!(lacking.shared(&limits).is_err());
    }

    /// AG-10: groups are within each other, and go with the outer one.
    #[test]
    fn groups_are_within_each_other() {
        let Some(cgroup) = delegated() else { return };
        let outer = cgroup.share(GroupLimits::default()).unwrap();
        let inner = outer.cgroup().share(GroupLimits::default()).unwrap();
        let (inner_path, outer_path) = (inner.path().to_owned(), outer.path().to_owned());
        assert!(inner_path.starts_with(&outer_path) && outer_path.starts_with(cgroup.path()));
        // Whoever comes by leaves what is in use.
        Cgroup::open(cgroup.path()).unwrap();
        assert!(inner_path.exists());
        std::mem::forget(inner);
        drop(outer);
        assert!(!outer_path.exists());
    }
}
