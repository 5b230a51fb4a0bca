//! Finds the processes under a given one, or in a group, in `/proc`, and ends them.

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
};

/// How many rounds look for processes that were started meanwhile, before all that were found are killed.
const FREEZE_ROUNDS: usize = 16;

/// One process. Its number may be reused by another, but not together with its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pid: Pid,
    /// The start time, in ticks since the machine booted.
    started: u64,
}

impl Process {
    /// Sends a signal to this process, and never to another one that reuses its number.
    fn signal(self, signal: Signal) {
        // Open the handle first and then check the process, so that the handle is known to mean this process.
        // A process that may not be signalled, or is gone, is skipped; the caller counts the survivors in the end.
        let _ = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) if self.is_running() => pidfd_send_signal(handle, signal),
            Ok(_) | Err(Errno::SRCH) => Ok(()),
            Err(_) => kill_process(self.pid, signal),
        };
    }

    fn is_running(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started)
    }
}

/// The fields of `/proc/N/stat` that are needed.
struct Stat {
    parent: i32,
    group: i32,
    session: i32,
    is_dead: bool,
    started: u64,
}

/// The living processes under `root`, at any depth, and those of the session that it leads. When `root` has died,
/// its children have another parent, and only the session still tells that they belonged to it.
///
/// # Errors
/// When `/proc` cannot be read.
pub(crate) fn descendants(root: Pid) -> io::Result<Vec<Process>> {
    let root = root.as_raw_pid();
    let mut children: HashMap<i32, Vec<(Process, bool)>> = HashMap::new();
    for (pid, stat) in all()? {
        let process = Process { pid, started: stat.started };
        let is_of_session = stat.session == root && pid.as_raw_pid() != root;
        let parent = if is_of_session { root } else { stat.parent };
        children.entry(parent).or_default().push((process, stat.is_dead));
    }
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for (process, is_dead) in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid.as_raw_pid());
            if !is_dead {
                found.push(process);
            }
        }
    }
    Ok(found)
}

/// Whether a process of this group is alive. So it seems if `/proc` cannot be read.
pub(crate) fn has_living(group: Pid) -> bool {
    let is_living = |stat: Stat| !stat.is_dead && stat.group == group.as_raw_pid();
    all().map_or(true, |mut all| all.any(|(_, stat)| is_living(stat)))
}

/// Processes that have been asked to end, each once: a second signal would cut short what a first one lets them do.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashSet<Process>);

impl Asked {
    /// Asks all processes under `root` to end, stopped ones too.
    pub(crate) fn all(root: Pid) -> Self {
        let mut asked = Self::default();
        for process in descendants(root).unwrap_or_default() {
            asked.ask(process);
        }
        asked
    }

    /// How many were asked.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Asks those, too, that were started while others were asked, and were left by whoever started them: they are
    /// children of `root` now. What a process starts that lives, for example to clean up, is its own affair.
    pub(crate) fn orphans(&mut self, root: Pid) {
        for process in orphans(root).unwrap_or_default() {
            self.ask(process);
        }
    }

    fn ask(&mut self, process: Process) {
        if self.0.insert(process) {
            process.signal(Signal::TERM);
            process.signal(Signal::CONT);
        }
    }
}

/// The living children of a process.
fn orphans(parent: Pid) -> io::Result<Vec<Process>> {
    let is_its = |stat: &Stat| !stat.is_dead && stat.parent == parent.as_raw_pid();
    let children = all()?.filter(|(_, stat)| is_its(stat));
    Ok(children.map(|(pid, stat)| Process { pid, started: stat.started }).collect())
}

/// Kills all processes under `root`. They are stopped first, because a stopped process starts no other: once a round
/// finds no new process, all have been stopped.
pub(crate) fn kill_all(root: Pid) {
    let mut stopped = HashSet::new();
    for _ in 0..FREEZE_ROUNDS {
        let mut found = descendants(root).unwrap_or_default();
        found.retain(|process| stopped.insert(*process));
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|process| process.signal(Signal::STOP));
    }
    stopped.iter().for_each(|process| process.signal(Signal::KILL));
}

/// All processes, as far as they can be seen.
fn all() -> io::Result<impl Iterator<Item = (Pid, Stat)>> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw);
    Ok(fs::read_dir("/proc")?.flatten().filter_map(number).filter_map(|pid| Some((pid, stat(pid)?))))
}

fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    read_stat(&String::from_utf8_lossy(&text))
}

/// Parses `pid (name) state parent group session …`; the start time is the 22nd field. The name may contain
/// anything, brackets too.
fn read_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Stat { parent, group, session, is_dead, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_hides_nothing() {
        let line = "42 (a) Z (b) S 7 41 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9";
        let stat = read_stat(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session), (7, 41, 40));
        assert_eq!((stat.is_dead, stat.started), (false, 123_456));
        assert!(read_stat("42 (cut off").is_none());
    }

    #[test]
    fn a_child_is_found_and_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = rustix::process::getpid();
        let process =
            descendants(me).unwrap().into_iter().find(|one| one.pid.as_raw_pid() == child.id() as i32);
        process.unwrap().signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
