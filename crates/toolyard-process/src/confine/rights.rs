//! Landlock: the same bounds on files once more, and on signals and abstract sockets, within the namespaces.

use super::Layout;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use std::{fmt, io, path::Path};

/// The newest version that this code knows; an older kernel enforces what it knows.
pub(super) const NEWEST: ABI = ABI::V8;

/// The versions that differ in what they keep of a program, each newer than the one before.
const VERSIONS: [ABI; 6] = [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6];

/// The version of landlock (its ABI) that the kernel of this machine has; 0 if it has none, and 6 for any from that on,
/// because the newer ones keep no more of what is asked of them here.
///
/// Landlock bounds files once more within the namespaces of a confined program, and
/// [alone](crate::Confinement::landlock_alone) where there are no namespaces.
pub fn landlock_version() -> u32 {
    let newest = VERSIONS.into_iter().rfind(|version| has(*version));
    newest.map_or(0, |version| version as u32)
}

/// Whether the kernel has all of a version.
fn has(version: ABI) -> bool {
    let of_files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version));
    let of_networks = of_files.and_then(|it| {
        if version < ABI::V4 { Ok(it) } else { it.handle_access(AccessNet::from_all(version)) }
    });
    let all = of_networks
        .and_then(|it| if version < ABI::V6 { Ok(it) } else { it.scope(Scope::from_all(version)) });
    all.and_then(Ruleset::create).is_ok()
}

/// The error of landlock as one of the system.
pub(super) fn failed(error: impl fmt::Display) -> io::Error {
    io::Error::other(format!("landlock: {error}"))
}

/// Bounds this process, which is in its new root already, and all that it starts. A kernel without landlock bounds
/// nothing: the namespaces do.
pub(super) fn bound(layout: &Layout) -> io::Result<()> {
    restrict(layout).map_err(failed)
}

fn restrict(layout: &Layout) -> Result<(), landlock::RulesetError> {
    let (read, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let system = layout.system.iter().map(|path| (path.as_path(), read));
    let made =
        [("/", AccessFs::ReadDir.into()), ("/etc", read), ("/proc", read), ("/dev", all), ("/tmp", all)];
    let made = made.into_iter().map(|(path, access)| (Path::new(path), access));
    let granted =
        layout.grants.iter().map(|grant| (grant.at.as_path(), if grant.is_writable { all } else { read }));
    let rules = system.chain(made).chain(granted).filter_map(|(path, access)| rule(path, access));
    let mut ruleset = ruleset;
    for rule in rules {
        ruleset = ruleset.add_rule(rule)?;
    }
    ruleset.restrict_self().map(drop)
}

/// The rule for a path, if it exists. A file has fewer rights than a directory.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    PathFd::new(path).ok().map(|path| PathBeneath::new(path, access))
}
