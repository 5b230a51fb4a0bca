//! The processes under one, found in `/proc`, and how they are ended.

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
};

/// How often those that were started meanwhile are looked for before all that was found is killed.
const FREEZE_ROUNDS: usize = 16;

/// One process: a number may come to mean another, the number and the time of its start do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pid: Pid,
    /// In ticks since the machine started.
    started: u64,
}

impl Process {
    /// Sends a signal, to this process and to none that has its number since.
    fn signal(self, signal: Signal) {
        // The handle is taken first and the process looked at then: what it names is what was looked at.
        // Whoever may not be signalled, or is gone, is left; the caller counts who is there in the end.
        let _ = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) if self.is_there() => pidfd_send_signal(handle, signal),
            Ok(_) | Err(Errno::SRCH) => Ok(()),
            Err(_) => kill_process(self.pid, signal),
        };
    }

    fn is_there(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started)
    }
}

/// What `/proc/N/stat` says of a process.
struct Stat {
    parent: i32,
    session: i32,
    is_dead: bool,
    started: u64,
}

/// The living processes under `root`, at any depth, and those of the session that it leads: when it has died, its
/// children are under another, and the session is what tells whose they were.
///
/// # Errors
/// When `/proc` cannot be read.
pub(super) fn under(root: Pid) -> io::Result<Vec<Process>> {
    let root = root.as_raw_pid();
    let mut children: HashMap<i32, Vec<(Process, bool)>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some((pid, stat)) = pid.and_then(|pid| Some((pid, stat(pid)?))) {
            let process = Process { pid, started: stat.started };
            let is_of_session = stat.session == root && pid.as_raw_pid() != root;
            let parent = if is_of_session { root } else { stat.parent };
            children.entry(parent).or_default().push((process, stat.is_dead));
        }
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

/// Asks all under `root` to end, those that are stopped too. How many there were.
pub(super) fn ask_to_end(root: Pid) -> usize {
    let found = under(root).unwrap_or_default();
    for process in &found {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    found.len()
}

/// Kills all under `root`. They are stopped first: who is stopped starts no other, so that one look after the last
/// has been stopped finds nobody new.
pub(super) fn kill_all(root: Pid) {
    let mut stopped = HashSet::new();
    for _ in 0..FREEZE_ROUNDS {
        let mut found = under(root).unwrap_or_default();
        found.retain(|process| stopped.insert(*process));
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|process| process.signal(Signal::STOP));
    }
    stopped.iter().for_each(|process| process.signal(Signal::KILL));
}

fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    read_stat(&String::from_utf8_lossy(&text))
}

/// `pid (name) state parent group session …`, the start being the 22nd field. A name may hold anything, brackets too.
fn read_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Stat { parent, session, is_dead, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_hides_nothing() {
        let line = "42 (a) Z (b) S 7 41 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9";
        let stat = read_stat(line).unwrap();
        assert_eq!((stat.parent, stat.session, stat.is_dead, stat.started), (7, 40, false, 123_456));
        assert!(read_stat("42 (cut off").is_none());
    }

    #[test]
    fn a_child_is_found_and_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = rustix::process::getpid();
        let process = under(me).unwrap().into_iter().find(|one| one.pid.as_raw_pid() == child.id() as i32);
        process.unwrap().signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
