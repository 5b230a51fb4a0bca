//! The first file system of a machine: the agent, busybox, the modules, and what was added.

use super::{cpio::Archive, parts::Parts};
use crate::protocol::{AGENT, BUSYBOX, MODULES};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

/// The modules that the serial port needs, in the order in which they are loaded.
const MODULE_NAMES: [&str; 6] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_console",
];

/// The most bytes of it: it lies in the machine's memory.
const BYTES_MAX: u64 = 512 << 20;

/// What stands at a path.
enum Entry {
    Directory,
    File { from: PathBuf, mode: u32 },
    Link(PathBuf),
}

/// Makes the archive. This blocks the thread.
///
/// # Errors
/// Which part cannot be read, and why.
pub(super) fn build(parts: &Parts) -> io::Result<Vec<u8>> {
    let mut entries = BTreeMap::new();
    for directory in ["bin", "dev", "proc", "root", "tmp", "usr", "usr/bin", MODULES.trim_start_matches('/')]
    {
        entries.insert(PathBuf::from(directory), Entry::Directory);
    }
    let mut program = |path: &str, from: &Path| {
        let entry = Entry::File { from: from.to_owned(), mode: 0o755 };
        entries.insert(inside(Path::new(path)), entry);
    };
    program(AGENT, &parts.agent);
    program(BUSYBOX, &parts.busybox);
    for (number, file) in modules(&parts.modules)?.into_iter().enumerate() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = inside(Path::new(MODULES)).join(format!("{number}-{name}"));
        entries.insert(path, Entry::File { from: file, mode: 0o644 });
    }
    parts.add.iter().try_for_each(|path| add(path, &mut entries).map_err(|error| named(path, &error)))?;
    archive(&entries)
}

/// The files of the modules that are not parts of the kernel itself.
fn modules(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let built_in = fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
    let mut files = BTreeMap::new();
    for part in ["virtio", "char"] {
        let part = directory.join("kernel/drivers").join(part);
        for entry in part.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((module, _)) = name.split_once(".ko") {
                files.insert(module.replace('-', "_"), entry.path());
            }
        }
    }
    let is_built_in = |name: &str| built_in.lines().any(|line| line.ends_with(&format!("/{name}.ko")));
    let needed = MODULE_NAMES.iter().filter(|name| !is_built_in(name));
    needed
        .map(|name| {
            let missing =
                || io::Error::other(format!("there is no module {name} in '{}'", directory.display()));
            files.remove(*name).ok_or_else(missing)
        })
        .collect()
}

/// Adds a file or a directory with all in it, and the directories above it.
fn add(path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) -> io::Result<()> {
    for above in path.ancestors().skip(1).filter(|above| above.parent().is_some()) {
        entries.entry(inside(above)).or_insert(Entry::Directory);
    }
    let about = path.symlink_metadata()?;
    if about.is_dir() {
        entries.insert(inside(path), Entry::Directory);
        for entry in path.read_dir()? {
            add(&entry?.path(), entries)?;
        }
    } else if about.is_symlink() {
        entries.insert(inside(path), Entry::Link(fs::read_link(path)?));
    } else if about.is_file() {
        let mode = about.permissions().mode();
        entries.insert(inside(path), Entry::File { from: path.to_owned(), mode });
    }
    Ok(())
}

fn archive(entries: &BTreeMap<PathBuf, Entry>) -> io::Result<Vec<u8>> {
    let (mut archive, mut left) = (Archive::default(), BYTES_MAX);
    for (path, entry) in entries {
        let name = path.as_os_str().as_bytes();
        match entry {
            Entry::Directory => archive.directory(name),
            Entry::Link(target) => archive.link(name, target.as_os_str().as_bytes()),
            Entry::File { from, mode } => {
                let content = fs::read(from).map_err(|error| named(from, &error))?;
                let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
                let too_much =
                    || io::Error::other(format!("all files have more than {} MiB", BYTES_MAX >> 20));
                left = left.checked_sub(size).ok_or_else(too_much)?;
                archive.file(name, *mode, &content);
            }
        }
    }
    Ok(archive.finish())
}

/// The path without the slash in front.
fn inside(path: &Path) -> PathBuf {
    path.strip_prefix("/").unwrap_or(path).to_owned()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("'{}': {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_neither_a_file_nor_built_in_is_named() {
        let place = tempfile::tempdir().unwrap();
        let drivers = place.path().join("kernel/drivers");
        fs::create_dir_all(drivers.join("virtio")).unwrap();
        for name in ["virtio.ko", "virtio_ring.ko.xz", "virtio_pci.ko"] {
            fs::write(drivers.join("virtio").join(name), "").unwrap();
        }
        let built_in = "kernel/drivers/virtio/virtio_pci_modern_dev.ko\nkernel/drivers/virtio/virtio_pci_legacy_dev.ko\n";
        fs::write(place.path().join("modules.builtin"), built_in).unwrap();
        let error = modules(place.path()).unwrap_err();
        assert!(error.to_string().starts_with("there is no module virtio_console in '"), "{error}");
        fs::create_dir(drivers.join("char")).unwrap();
        fs::write(drivers.join("char/virtio_console.ko"), "").unwrap();
        let names = modules(place.path()).unwrap();
        let names: Vec<_> = names.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["virtio_ring.ko.xz", "virtio.ko", "virtio_pci.ko", "virtio_console.ko"]);
    }

    #[test]
    fn what_is_added_stands_where_it_stood() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("a")).unwrap();
        fs::write(place.path().join("a/b"), "").unwrap();
        std::os::unix::fs::symlink("b", place.path().join("a/c")).unwrap();
        let mut entries = BTreeMap::new();
        add(&place.path().join("a"), &mut entries).unwrap();
        let at = inside(place.path());
        assert!(matches!(entries[&at], Entry::Directory));
        assert!(matches!(entries[&at.join("a/b")], Entry::File { .. }));
        assert!(matches!(&entries[&at.join("a/c")], Entry::Link(to) if to == Path::new("b")));
    }
}
