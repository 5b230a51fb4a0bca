//! Waits for the first process inside, and ends it when all processes have used their CPU time.

use crate::{Limit, cgroup::Own};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    cell::Cell, convert::Infallible, fs, future::pending, os::fd::OwnedFd, process::Child, time::Duration,
};
use tokio::time::sleep;

/// The shortest time after which CPU time is looked at again.
const SHORTEST: Duration = Duration::from_millis(10);

/// The longest: the kernel does not take just any.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until init has ended. Returns the limit of its group that was reached.
pub(super) fn attend(init: &mut Child, group: &Own, cpu_time: Option<Duration>) -> Option<Limit> {
    let is_spent = cpu_time.is_some_and(|most| watch(init, group, most));
    if is_spent {
        group.kill();
    }
    let _ = init.wait();
    if is_spent { Some(Limit::CpuTime) } else { group.reached() }
}

/// Waits until init has ended, or its group has used this CPU time. Returns whether it has. What cannot be watched is not
/// let run.
fn watch(init: &Child, group: &Own, most: Duration) -> bool {
    let processors = processors();
    let Ok(handle) = pidfd_open(Pid::from_child(init), PidfdFlags::empty()) else { return true };
    loop {
        let left = match group.cpu_time() {
            Ok(used) if used < most => most - used,
            Ok(_) | Err(_) => return true,
        };
        match has_ended(&handle, pause(left, processors)) {
            Ok(true) => return false,
            Ok(false) | Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Ends all that is in a group when it has used this CPU time, and notes it. Without a limit there is nothing to do.
///
/// # Cancel safety
/// Dropping the future ends the watch and nothing else.
pub(super) async fn spend(limit: Option<(&Own, Duration)>, is_spent: &Cell<bool>) -> Infallible {
    let Some((group, most)) = limit else { return pending().await };
    let processors = processors();
    while let Some(left) =
        group.cpu_time().ok().and_then(|used| most.checked_sub(used)).filter(|left| !left.is_zero())
    {
        sleep(pause(left, processors).min(LONGEST)).await;
    }
    is_spent.set(true);
    group.kill();
    pending().await
}

/// The processors of this machine. Those that this process may use are fewer than those that the program may come to use.
fn processors() -> u32 {
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    };
    let all = fs::read_to_string("/proc/stat").map(|text| text.lines().filter(is_one).count());
    // As many as there can be, if they cannot be counted.
    all.ok().and_then(|all| u32::try_from(all).ok()).filter(|all| *all > 0).unwrap_or(u32::MAX)
}

/// The time in which these processors spend what is left.
fn pause(left: Duration, processors: u32) -> Duration {
    (left / processors).max(SHORTEST)
}

fn has_ended(handle: &OwnedFd, within: Duration) -> Result<bool, Errno> {
    let within = Timespec::try_from(within.min(LONGEST)).map_err(|_| Errno::INVAL)?;
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&within)).map(|ended| ended > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_looked_at_before_it_can_be_spent() {
        let second = Duration::from_secs(1);
        assert_eq!([pause(second, 4), pause(second, u32::MAX)], [second / 4, SHORTEST]);
        assert!((1..=65_536).contains(&processors()));
    }
}
