//! The namespaces of a confined program, and who it is in them.

use nix::sched::{CloneFlags, unshare};
use rustix::{
    process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    },
};
use std::{fs, io};

/// The user and group of a program that root starts: nobody's in particular, and none that files of the system have.
const NOT_ROOT: u32 = 1000;

/// Who the program is inside. It is the same user to the host, and never root in its own eyes: then an exec leaves it no
/// capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Leaves this process's namespaces. Its children will be in a pid namespace of their own. It must have no other thread.
///
/// # Errors
/// When the system does not let this user make namespaces.
pub(super) fn leave() -> io::Result<Who> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let who = Who { uid: not_root(uid), gid: not_root(gid) };
    // The kernel gives the files of a process that cannot be dumped to root, and the maps are such files.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let own = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNET;
    unshare(own).map_err(|error| denied("make namespaces", error.into()))?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| denied(&format!("write {file}"), error))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {uid} 1", who.uid))?;
    write("gid_map", format!("{} {gid} 1", who.gid))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(who)
}

/// Lets the next program that this process executes keep what it needs to enter the root.
pub(super) fn hand_down() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    for capability in CapabilitySet::all() {
        // One that this kernel does not know cannot be had either.
        let _ = remove_capability_from_bounding_set(capability);
    }
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// Gives up every capability, for good.
pub(super) fn give_up() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// The settings of the kernel that keep a user from namespaces, with the value that does, and what that means.
const FORBIDDING: [(&str, &str, &str); 3] = [
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps user namespaces from programs without a profile that allows them",
    ),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
    ("user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
];

/// The error with what was tried, and why the system says no, if it says that.
fn denied(what: &str, error: io::Error) -> io::Error {
    let forbids = |(setting, value, _): &&(&str, &str, &str)| {
        fs::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|set| set.trim() == *value)
    };
    let error = named(what, error);
    match FORBIDDING.iter().find(forbids) {
        Some((_, _, why)) => io::Error::new(error.kind(), format!("{error}: {why}")),
        None => error,
    }
}

fn not_root(id: u32) -> u32 {
    if id == 0 { NOT_ROOT } else { id }
}

/// The error with what was tried.
pub(super) fn named(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what}: {error}"))
}
