//! A server's first process and all that it started.
//!
//! The number of the first is that of the group. It stays theirs, and what is sent to it reaches nobody else, as long as the
//! first is not buried, be it dead or not: so it is only looked at, and buried when nothing will be sent any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::process::Child;

/// The processes of a server, while it has some: known to who drives it and to who may have to end it at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// The number of the first; held while something is sent there, so that it does not become another's meanwhile.
    number: Arc<Mutex<Option<i32>>>,
}

impl Group {
    fn number(&self) -> MutexGuard<'_, Option<i32>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process was started, the first of a group.
    pub(super) fn is(&self, child: &Child) {
        *self.number() = child.id().and_then(|number| i32::try_from(number).ok());
    }

    /// All has been done: the first may be buried, and the number may be another's then.
    pub(super) fn is_over(&self) {
        *self.number() = None;
    }
}

#[cfg(unix)]
mod unix {
    use super::{Child, Group};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    impl Group {
        /// Whether the first has ended. It is not buried by that.
        pub(in super::super) fn has_ended(&self, _: &mut Child) -> bool {
            self.number().and_then(Pid::from_raw).is_none_or(has_ended)
        }

        /// Whether a process of it is alive.
        pub(in super::super) fn is_there(&self, _: &mut Child) -> bool {
            self.number().and_then(Pid::from_raw).is_some_and(|first| !has_ended(first) || is_alive(first))
        }

        pub(in super::super) fn terminate(&self) {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
        }

        pub(in super::super) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        /// Kills what there is; nobody asks any more.
        pub(in super::super) fn end_at_once(&self) {
            self.kill();
            self.is_over();
        }

        fn signal(&self, signal: Signal) {
            let number = self.number();
            if let Some(first) = number.and_then(Pid::from_raw) {
                // An empty group needs none.
                let _ = kill_process_group(first, signal);
            }
        }
    }

    fn has_ended(first: Pid) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(first), look), Ok(None))
    }

    /// Whether any of a group is alive. A signal would be taken by the dead too.
    #[cfg(target_os = "linux")]
    fn is_alive(group: Pid) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else { return true };
        let mut stats =
            processes.flatten().filter_map(|one| std::fs::read_to_string(one.path().join("stat")).ok());
        stats.any(|stat| is_living_member(&stat, group).unwrap_or(false))
    }

    /// `/proc/N/stat` is a number, a name in brackets that may have any letter, a state, the parent's number, the group's.
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

/// Where there are no groups, the first process alone is known; it is killed when it is dropped.
#[cfg(not(unix))]
impl Group {
    pub(super) fn has_ended(&self, child: &mut Child) -> bool {
        !matches!(child.try_wait(), Ok(None))
    }

    pub(super) fn is_there(&self, child: &mut Child) -> bool {
        let is_there = !self.has_ended(child);
        if is_there {
            let _ = child.start_kill();
        }
        is_there
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) fn end_at_once(&self) {}
}
