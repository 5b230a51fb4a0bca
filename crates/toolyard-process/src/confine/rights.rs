//! Landlock: the same bounds on files once more, and on signals and abstract sockets, within the namespaces.

use super::Layout;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use std::{io, path::Path};

/// The newest version that this code knows; an older kernel enforces what it knows.
const NEWEST: ABI = ABI::V8;

/// Whether the kernel of this machine has landlock, which bounds files once more within the namespaces of a confined
/// program.
pub fn has_landlock() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Bounds this process, which is in its new root already, and all that it starts. A kernel without landlock bounds
/// nothing: the namespaces do.
pub(super) fn bound(layout: &Layout) -> io::Result<()> {
    restrict(layout).map_err(|error| io::Error::other(format!("landlock: {error}")))
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
