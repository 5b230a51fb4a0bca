//! Landlock as the only bound on files.

use super::{
    super::{
        Layout,
        rights::{NEWEST, failed, landlock_version},
    },
    lacks::landlock_alone_lacks,
    paths::Given,
};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{FileType, fstat};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// What is asked for as well if the kernel has it: what programs look up there says nothing of files.
const PROC: &str = "/proc";

/// The devices that every program may use.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Bounds this process and all that it starts.
///
/// # Errors
/// Also if the kernel's landlock keeps too little.
pub(super) fn bound(layout: &Layout, handles: &[impl AsFd]) -> io::Result<()> {
    landlock_alone_lacks(landlock_version()).map_err(io::Error::other)?;
    let mut ruleset = ruleset().map_err(failed)?;
    let read = AccessFs::from_read(ABI::V1);
    for path in &layout.system {
        add_named(&mut ruleset, path, read)?;
    }
    add_named(&mut ruleset, PROC, AccessFs::ReadFile | AccessFs::ReadDir)?;
    for device in DEVICES {
        add_named(&mut ruleset, device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    let mut give = |path: BorrowedFd<'_>, is_writable| {
        add(&mut ruleset, path, if is_writable { writing() } else { read })
    };
    Given::all(layout, handles, &mut give)?;
    ruleset.restrict_self().map(drop).map_err(failed)
}

/// Everything is forbidden that the kernel can forbid: of what it must, and of what newer ones can.
fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// What may be done where a program may write: everything but to make devices and sockets, and to control devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V3) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock)
}

/// Allows this at a path, if it exists.
fn add_named(
    ruleset: &mut RulesetCreated,
    path: impl AsRef<std::path::Path>,
    access: impl Into<BitFlags<AccessFs>>,
) -> io::Result<()> {
    match PathFd::new(path) {
        Ok(path) => add(ruleset, path.as_fd(), access.into()),
        Err(_) => Ok(()),
    }
}

/// A file has fewer rights than a directory.
fn add(ruleset: &mut RulesetCreated, path: BorrowedFd<'_>, access: BitFlags<AccessFs>) -> io::Result<()> {
    let is_directory = FileType::from_raw_mode(fstat(path)?.st_mode).is_dir();
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(path, access)).map(drop).map_err(failed)
}
