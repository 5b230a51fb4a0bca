//! Limits of all processes of a program together: groups of the kernel's (cgroup v2).
//!
//! ```text
//!   a delegated group, without processes       memory, pids: enabled for the groups in it
//!     ├─ toolyard-PID-NUMBER    one for each confined program, made and locked by its helper
//!     │    └─ init, the program, and all that it starts; ended by cgroup.kill
//!     ├─ toolyard-PID-NUMBER    shared: without processes, with groups of programs in it that keep its limits together
//!     └─ toolyard-PID-NUMBER    not locked: its helper has died, and whoever comes next removes it
//! ```
//!
//! A process of an embedder is never moved: it is the first process of the confined program that enters, before it
//! executes anything.

mod files;
mod left;
mod limits;
mod own;
mod shared;

pub use limits::GroupLimits;
pub(crate) use own::{Own, enter, hide_others};
pub use shared::SharedGroup;

use crate::Limit;
use files::Directory;
use std::{
    io,
    path::{Path, PathBuf},
};

/// A delegated group of cgroup v2, in which each confined program gets a group of its own.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
/// use toolyard_process::{Cgroup, Confinement, GroupLimits, Limit};
/// let cgroup = Cgroup::open("/sys/fs/cgroup/toolyard")?;
/// assert_eq!(cgroup.lacks(Limit::CpuTime), None);
/// let limits = GroupLimits { cpu_time: Some(Duration::from_secs(10)), ..GroupLimits::default() };
/// let confinement = Confinement::new().cgroup(&cgroup, limits);
/// # let _ = confinement;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    path: PathBuf,
    /// Why there is no limit on memory, if there is none.
    no_memory: Option<String>,
    no_processes: Option<String>,
}

impl Cgroup {
    /// The group at this path. Enables for the groups in it what is needed to limit memory and processes, as far as it
    /// may, and removes groups of helpers that have died.
    ///
    /// # Errors
    /// What the path lacks: it must be a group of cgroup v2, other than the root, without processes of its own, in which
    /// this program may make others. Plain files are refused, which would be made in another file system, and would limit
    /// nothing.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let group = Directory::open(&path)?;
        let kind = group.read("cgroup.type").map_err(|_| lacking("is the root of all groups".to_owned()))?;
        if kind.trim() != "domain" {
            return Err(lacking(format!("is a group of type '{}', and not 'domain'", kind.trim())));
        }
        if !group.read("cgroup.procs")?.is_empty() {
            return Err(lacking("has processes of its own".to_owned()));
        }
        if !group.has("cgroup.kill") {
            return Err(lacking("has no cgroup.kill, which kernels have since 5.14".to_owned()));
        }
        let (no_memory, no_processes) = (enable(&group, "memory"), enable(&group, "pids"));
        let own = Own::make(&path, &GroupLimits::default(), 0)?;
        let no_memory = no_memory.err().or_else(|| own.swaps().then(swaps));
        Ok(Self { path, no_memory, no_processes: no_processes.err() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why groups in it cannot keep this limit; `None` if they keep it. CPU time is counted by every group.
    pub fn lacks(&self, limit: Limit) -> Option<&str> {
        match limit {
            Limit::Memory => self.no_memory.as_deref(),
            Limit::Processes => self.no_processes.as_deref(),
            Limit::CpuTime => None,
        }
    }
}

/// Makes a controller available to the groups in this one.
fn enable(group: &Directory, controller: &str) -> Result<(), String> {
    let names = |file: &str| group.read(file).unwrap_or_default();
    let lists = |names: &str| names.split_ascii_whitespace().any(|name| name == controller);
    if !lists(&names("cgroup.controllers")) {
        return Err(format!("its cgroup.controllers lacks '{controller}'"));
    }
    if lists(&names("cgroup.subtree_control")) {
        return Ok(());
    }
    let enabled = group.write("cgroup.subtree_control", &format!("+{controller}"));
    enabled.map_err(|error| format!("'{controller}' cannot be enabled: {error}"))
}

fn swaps() -> String {
    "its groups cannot limit swap".to_owned()
}

fn lacking(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-4: files that only look like a group enforce nothing.
    #[test]
    fn plain_files_are_no_group() {
        let place = tempfile::tempdir().unwrap();
        for (file, text) in
            [("cgroup.type", "domain"), ("cgroup.procs", ""), ("cgroup.controllers", "memory pids")]
        {
            std::fs::write(place.path().join(file), text).unwrap();
        }
        let error = Cgroup::open(place.path()).unwrap_err();
        assert_eq!(error.to_string(), "it does not lie in a cgroup2 file system");
        assert!(Cgroup::open(place.path().join("none")).is_err());
    }
}
