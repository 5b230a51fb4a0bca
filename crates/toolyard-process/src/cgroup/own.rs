//! The group of one program.

use super::{
    GroupLimits,
    files::{Directory, number},
    left::{self, PREFIX},
};
use crate::{Limit, Used};
use nix::sched::{CloneFlags, unshare};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, mkdirat},
    io::Errno,
    process::getpid,
};
use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::OwnedFd,
    path::Path,
    time::Duration,
};

/// How many names are tried. One may be taken by a process of another container that has the same number.
const NAMES: usize = 64;

/// How often, and for how long each time, the end of processes that have been killed is waited for.
const WAITS: usize = 4;
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// A group that this process has made, and removes when it is dropped, with all that is in it.
#[derive(Debug)]
pub(crate) struct Own {
    parent: Directory,
    name: String,
    directory: Directory,
}

impl Own {
    /// Makes a group in the one at this path, with these limits, and room for so many processes beside those that are
    /// limited; CPU time is for the caller to look at.
    ///
    /// # Errors
    /// Also when a limit cannot be kept.
    pub(crate) fn make(path: &Path, limits: &GroupLimits, beside: u64) -> io::Result<Self> {
        let parent = Directory::open(path)?;
        left::remove(&parent, path);
        let own = Self::new(parent)?;
        own.apply(limits, beside)?;
        Ok(own)
    }

    /// The same for a group in which there are others. At its limit of memory one of those ends, and not all.
    ///
    /// # Errors
    /// Also when a limit cannot be kept.
    pub(super) fn shared(path: &Path, limits: &GroupLimits, beside: u64) -> io::Result<Self> {
        let own = Self::make(path, limits, beside)?;
        if limits.memory.is_some() {
            own.directory.write("memory.oom.group", "0")?;
        }
        Ok(own)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    fn new(parent: Directory) -> io::Result<Self> {
        for number in 0..NAMES {
            let name = format!("{PREFIX}{}-{number}", getpid().as_raw_pid());
            match mkdirat(parent.handle(), &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.map_err(|error| named("no group can be made in it", error.into()))?,
            }
            if let Some(directory) = claim(&parent, &name)? {
                return Ok(Self { parent, name, directory });
            }
        }
        Err(io::Error::other("no name is free in it"))
    }

    fn apply(&self, limits: &GroupLimits, beside: u64) -> io::Result<()> {
        let GroupLimits { memory, cpu_time: _, processes } = limits;
        let write = |limit: Limit, file: &str, text: &str| {
            let written = self.directory.write(file, text);
            written.map_err(|error| named(&format!("it cannot limit {limit} ({file})"), error))
        };
        if let Some(most) = memory {
            write(Limit::Memory, "memory.max", &most.to_string())?;
            write(Limit::Memory, "memory.oom.group", "1")?;
            if self.directory.has("memory.swap.max") {
                write(Limit::Memory, "memory.swap.max", "0")?;
            }
        }
        match processes {
            Some(most) => write(Limit::Processes, "pids.max", &most.saturating_add(beside).to_string()),
            None => Ok(()),
        }
    }

    /// Whether its memory could be swapped out without being limited.
    pub(super) fn swaps(&self) -> bool {
        !self.directory.has("memory.swap.max") && Path::new("/proc/swaps").exists()
    }

    /// What a process enters it by.
    pub(crate) fn entrance(&self) -> io::Result<OwnedFd> {
        self.directory.file("cgroup.procs", OFlags::WRONLY).map(OwnedFd::from)
    }

    /// The CPU time of all processes that are or were in it.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        self.directory.number("cpu.stat", "usage_usec").map(Duration::from_micros)
    }

    /// What all processes that were in it used, where the group knows more than what was counted of those that were reaped.
    pub(crate) fn used(&self, reaped: Used) -> Used {
        let peak = self.directory.read("memory.peak").ok().and_then(|peak| peak.trim().parse().ok());
        Used { cpu: self.cpu_time().unwrap_or(reaped.cpu), memory_peak: peak.unwrap_or(reaped.memory_peak) }
    }

    /// The limit of the kernel's that was reached.
    pub(crate) fn reached(&self) -> Option<Limit> {
        let happened = |file: &str, key: &str| self.directory.number(file, key).is_ok_and(|times| times > 0);
        if happened("memory.events", "oom_kill") {
            return Some(Limit::Memory);
        }
        happened("pids.events", "max").then_some(Limit::Processes)
    }

    /// Waits until no process is in it. The end of a process may be seen before it has left.
    fn wait_until_empty(&self) -> io::Result<()> {
        let mut events = self.directory.file("cgroup.events", OFlags::RDONLY)?;
        for _ in 0..WAITS {
            // What was read is what a change is awaited from.
            let mut text = String::new();
            events.rewind()?;
            events.read_to_string(&mut text)?;
            if number(&text, "populated") == Some(0) {
                return Ok(());
            }
            poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&WAIT))?;
        }
        Ok(())
    }

    /// Ends all processes in it.
    pub(crate) fn kill(&self) {
        // The only error is that it has gone.
        let _ = self.directory.write("cgroup.kill", "1");
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
        // The group of one that does not end is left to whoever comes next.
        let _ = self.wait_until_empty();
        left::unlink(&self.parent, &self.name);
    }
}

/// Opens and locks a group that was just made; `None` if somebody has found it between the two, taken it for one that is
/// left, and removed it.
fn claim(parent: &Directory, name: &str) -> io::Result<Option<Directory>> {
    let directory = match parent.at(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    Ok((directory.lock() && directory.is(parent, name)?).then_some(directory))
}

/// Enters a group by this. The machine ends this process before others when it has no
/// memory left, and the group can always end it.
pub(crate) fn enter(entrance: OwnedFd) -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", "1000")?;
    File::from(entrance).write_all(b"0").map_err(|error| named("enter its group", error))
}

/// Sees no group but its own from then on. It needs a user namespace of its own.
pub(crate) fn hide_others() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWCGROUP).map_err(|error| named("hide other groups", error.into()))
}

fn named(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
