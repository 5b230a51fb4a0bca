//! The system calls that a program may not make for want of namespaces, beside those that no confined program makes.
//!
//! Landlock has no word for what is changed of a file without opening it, or for what processes share without files. Modes
//! and times stay: compilers, archivers and shells set them by path, and a filter sees no paths.

use super::syscalls::{Refused, Rules, when};
use seccompiler::{SeccompCmpOp, SeccompRule};

/// Numbers that are the same on every machine, and newer than the C library's names of them.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Calls that fail whatever they are asked.
const FORBIDDEN: &[i64] = &[
    // Owners and attributes of files.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // What happens in directories of others.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    // Memory, queues and semaphores of others.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The calls that set a mode, and which argument it is.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// Those that make a program run as its owner or group.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// All processes that a signal may be sent to.
const EVERYBODY: u64 = 0xFFFF_FFFF;

/// The process itself, to what sets a limit or a priority; and the kind of the latter.
const ITSELF: u64 = 0;
const IO_PRIORITY_OF_PROCESS: u64 = 1;

/// What is forbidden.
pub(super) fn forbidden() -> Refused<Rules> {
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    for (call, argument) in MODES {
        let bits = SET_ID.map(|bit| rule(*argument, SeccompCmpOp::MaskedEq(bit.into()), bit.into()));
        rules.insert(*call, bits.into_iter().collect::<Refused<_>>()?);
    }
    let other_than = |argument, allowed| rule(argument, SeccompCmpOp::Ne, allowed);
    // A limit of CPU time that has passed would end a process that no signal reaches.
    rules.insert(libc::SYS_prlimit64, vec![other_than(0, ITSELF)?]);
    let of_process = libc::PRIO_PROCESS.into();
    rules.insert(libc::SYS_setpriority, vec![other_than(0, of_process)?, other_than(1, ITSELF)?]);
    rules.insert(libc::SYS_ioprio_set, vec![other_than(0, IO_PRIORITY_OF_PROCESS)?, other_than(1, ITSELF)?]);
    rules.insert(libc::SYS_kill, vec![rule(0, SeccompCmpOp::Eq, EVERYBODY)?]);
    Ok(rules)
}

fn rule(argument: u8, op: SeccompCmpOp, value: u64) -> Refused<SeccompRule> {
    SeccompRule::new(vec![when(argument, op, value)?])
}
