//! Seccomp: the system calls that a confined program may not make.
//!
//! Each fails with an error: runtimes probe for what there is, and go on without. What ends a process would end programs
//! that do no harm.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::{collections::BTreeMap, env, io};

/// What names an x32 system call on x86_64. The same calls by other numbers must not pass.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// The calls that x32 has by numbers of its own: `ioctl`, `ptrace`, `kexec_load`, `process_vm_readv` and
/// `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_OWN: [i64; 5] = [514, 521, 528, 539, 540];

/// Other processes, the kernel, its keys, mounts and namespaces: none of a program's business.
const FORBIDDEN: &[i64] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    // Networks and daemons.
    libc::SYS_socket,
];

/// Calls that newer runtimes try first, and do without: their arguments are in memory, which a filter cannot read.
const UNKNOWN: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// The flags of `clone` that make namespaces.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// What would put keystrokes into a terminal that the program was given.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, TIOCLINUX];
const TIOCLINUX: u64 = 0x541C;

/// What is refused, by the number of the call: always, or if one of its rules matches.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is made of rules.
pub(super) type Refused<T> = Result<T, seccompiler::BackendError>;

/// Bounds this process and all that it starts. With a door it may make the sockets that lead there.
pub(super) fn bound(has_door: bool) -> io::Result<()> {
    let filters = filters(has_door).map_err(|error| failed(error.into()))?;
    filters.iter().try_for_each(|filter| apply_filter(filter).map_err(failed))
}

/// Forbids these calls too.
pub(super) fn forbid(more: impl FnOnce() -> Refused<Rules>) -> io::Result<()> {
    let filter = more().and_then(|rules| filter(rules, libc::EPERM));
    filter.map_err(Into::into).and_then(|filter| apply_filter(&filter)).map_err(failed)
}

fn failed(error: seccompiler::Error) -> io::Error {
    io::Error::other(format!("seccomp: {error}"))
}

fn filters(has_door: bool) -> Refused<[BpfProgram; 2]> {
    let forbidden = forbidden(has_door)?;
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    Ok([filter(forbidden, libc::EPERM)?, filter(unknown, libc::ENOSYS)?])
}

fn filter(rules: Rules, error: i32) -> Refused<BpfProgram> {
    let rules = by_every_number(rules);
    let action = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, action, env::consts::ARCH.try_into()?)?.try_into()
}

fn forbidden(has_door: bool) -> Refused<Rules> {
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = NEW_NAMESPACES.iter().map(|flag| {
        let flag = flag.unsigned_abs().into();
        SeccompRule::new(vec![when(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let input = TERMINAL_INPUT.map(|request| SeccompRule::new(vec![when(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, input.into_iter().collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socketpair, pairs()?);
    if has_door {
        rules.insert(libc::SYS_socket, sockets()?);
    }
    Ok(rules)
}

/// The sockets that are not TCP: other protocols have streams too, and are less tried.
fn sockets() -> Refused<Vec<SeccompRule>> {
    let other = |argument, allowed: [i32; 2]| {
        let differs = allowed.map(|it| when(argument, SeccompCmpOp::Ne, it.unsigned_abs().into()));
        SeccompRule::new(differs.into_iter().collect::<Result<_, _>>()?)
    };
    let elsewhere = [other(0, [libc::AF_INET, libc::AF_INET6]), other(2, [0, libc::IPPROTO_TCP])];
    other_types().chain(elsewhere).collect()
}

/// The pairs of sockets that are not the pipes that runtimes make of them: those that are no streams of this machine.
/// Datagrams could be addressed to others.
fn pairs() -> Refused<Vec<SeccompRule>> {
    let local = libc::AF_UNIX.unsigned_abs().into();
    let elsewhere = SeccompRule::new(vec![when(0, SeccompCmpOp::Ne, local)?]);
    other_types().chain([elsewhere]).collect()
}

/// The sockets that are no streams, by the second argument of the calls that make some.
fn other_types() -> impl Iterator<Item = Refused<SeccompRule>> {
    const TYPES: u64 = 0xF;
    let stream: u64 = libc::SOCK_STREAM.unsigned_abs().into();
    let of_type = |it| SeccompRule::new(vec![when(1, SeccompCmpOp::MaskedEq(TYPES), it)?]);
    (0..=TYPES).filter(move |it| *it != stream).map(of_type)
}

/// A condition on the low half of an argument, which is all that the kernel looks at in these.
pub(super) fn when(argument: u8, op: SeccompCmpOp, value: u64) -> Refused<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)
}

/// The rules for every number that a call has.
#[cfg(target_arch = "x86_64")]
fn by_every_number(rules: Rules) -> Rules {
    let is_forbidden = rules.contains_key(&libc::SYS_ptrace);
    let own = X32_OWN.iter().filter(|_| is_forbidden).map(|number| (*number | X32, Vec::new()));
    let again = rules.iter().map(|(number, rules)| (*number | X32, rules.clone()));
    let again: Rules = again.chain(own).collect();
    rules.into_iter().chain(again).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn by_every_number(rules: Rules) -> Rules {
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that are too long, or jump too far, are refused here and not in a helper.
    #[test]
    fn the_filters_are_valid() {
        for filter in [false, true].into_iter().flat_map(|has_door| filters(has_door).unwrap()) {
            assert!(!filter.is_empty() && filter.len() < 4096, "{}", filter.len());
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_call_is_forbidden_by_its_x32_number_too() {
        let rules = by_every_number(forbidden(true).unwrap());
        assert!(FORBIDDEN.iter().all(|call| rules.contains_key(call) && rules.contains_key(&(call | X32))));
        assert!(rules.contains_key(&(521 | X32)));
    }
}
