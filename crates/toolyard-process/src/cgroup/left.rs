//! Removes groups whose helper has died.

use super::files::Directory;
use rustix::fs::{AtFlags, unlinkat};
use std::{fs, path::Path};

/// How the name of every group begins that this crate makes.
pub(super) const PREFIX: &str = "toolyard-";

/// Removes the groups in this one that nobody has locked, with what is in them. A group whose processes do not end at once
/// is left to the next who comes by.
pub(super) fn remove(parent: &Directory, path: &Path) {
    let Ok(entries) = fs::read_dir(path) else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        // One that is gone meanwhile was removed by its helper.
        let Ok(group) = parent.at(&name) else { continue };
        if group.lock() {
            let _ = group.write("cgroup.kill", "1");
            unlink(parent, &name);
        }
    }
}

/// Removes a group with those in it, as far as they are empty.
pub(super) fn unlink(parent: &Directory, name: &str) {
    let within = parent.at(name).and_then(|group| Ok((group.names()?, group)));
    if let Ok((names, group)) = within {
        names.iter().filter(|name| name.starts_with(PREFIX)).for_each(|name| unlink(&group, name));
    }
    let _ = unlinkat(parent.handle(), name, AtFlags::REMOVEDIR);
}
