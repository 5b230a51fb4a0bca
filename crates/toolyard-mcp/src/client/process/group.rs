//! The process group of a server: its first process and all that it started.
//!
//! The first process's id is that of the group. As long as the first process is not reaped, even if it is dead, the id
//! is not reused, and signals to it reach no other process. So it is only observed, and reaped when no more signals
//! will be sent.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::process::Child;

/// The process group of a server, if it has one. Shared by its supervisor and by `Servers`, which may kill it at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    /// The id of the first process. Locked while a signal is sent, so that the id is not reused meanwhile.
    number: Arc<Mutex<Option<i32>>>,
}

impl Group {
    /// Sets the group to that of a process that was started as its first.
    pub(crate) fn set(&self, child: &Child) {
        *self.number.lock() = child.id().and_then(|number| i32::try_from(number).ok());
    }

    /// Ends the group: no more signals are sent, so the first process may be reaped and the id reused.
    pub(crate) fn clear(&self) {
        *self.number.lock() = None;
    }
}

#[cfg(unix)]
mod unix {
    use super::{Child, Group};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    impl Group {
        /// Whether the first process has ended. It is not reaped.
        pub(crate) fn has_ended(&self, _: &mut Child) -> bool {
            self.number.lock().and_then(Pid::from_raw).is_none_or(has_ended)
        }

        /// Whether a process of the group is alive.
        pub(crate) fn has_living(&self, _: &mut Child) -> bool {
            self.number
                .lock()
                .and_then(Pid::from_raw)
                .is_some_and(|first| !has_ended(first) || is_alive(first))
        }

        pub(crate) fn terminate(&self) {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
        }

        pub(crate) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        /// Kills all processes, and ends the group.
        pub(crate) fn kill_now(&self) {
            self.kill();
            self.clear();
        }

        fn signal(&self, signal: Signal) {
            let number = self.number.lock();
            if let Some(first) = number.and_then(Pid::from_raw) {
                // An error means that the group is empty.
                let _ = kill_process_group(first, signal);
            }
        }
    }

    fn has_ended(first: Pid) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(first), look), Ok(None))
    }

    /// Whether any process of a group is alive. A signal does not tell, because zombies accept it, too.
    #[cfg(target_os = "linux")]
    fn is_alive(group: Pid) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else { return true };
        let mut stats =
            processes.flatten().filter_map(|one| std::fs::read_to_string(one.path().join("stat")).ok());
        stats.any(|stat| is_living_member(&stat, group).unwrap_or(false))
    }

    /// `/proc/N/stat` has the id, the name in brackets (any characters), the state, the parent's id and the group's id.
    #[cfg(target_os = "linux")]
    fn is_living_member(stat: &str, group: Pid) -> Option<bool> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let is_living = !matches!(fields.next()?, "Z" | "X" | "x");
        Some(is_living && fields.nth(1)?.parse() == Ok(group.as_raw_pid()))
    }

    #[cfg(not(target_os = "linux"))]
    fn is_alive(group: Pid) -> bool {
        rustix::process::test_kill_process_group(group).is_ok()
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;

        /// The name of a process may look like the rest of the line.
        #[test]
        fn a_line_is_read_behind_the_name() {
            let group = Pid::from_raw(77).unwrap();
            for (stat, expect) in [
                ("80 (sleep) S 1 77 77 0 -1", Some(true)),
                ("80 (sleep) Z 1 77 77 0 -1", Some(false)),
                ("80 (sleep) S 77 78 77 0 -1", Some(false)),
                ("80 (a) Z 1 78) R 1 77 77 0 -1", Some(true)),
                ("80", None),
            ] {
                assert_eq!(is_living_member(stat, group), expect, "{stat}");
            }
        }
    }
}

/// Without process groups only the first process is known; it is killed on drop.
#[cfg(not(unix))]
impl Group {
    pub(crate) fn has_ended(&self, child: &mut Child) -> bool {
        !matches!(child.try_wait(), Ok(None))
    }

    pub(crate) fn has_living(&self, child: &mut Child) -> bool {
        let is_living = !self.has_ended(child);
        if is_living {
            let _ = child.start_kill();
        }
        is_living
    }

    pub(crate) fn terminate(&self) {}

    pub(crate) fn kill(&self) {}

    pub(crate) fn kill_now(&self) {}
}
