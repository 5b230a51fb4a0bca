//! The root of a confined program: nothing of the host but what it is given.

use super::{
    Grant, Layout,
    binds::{Source, inside},
    system::MADE_UP,
    user::{Who, named},
};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_remount, unmount,
};
use std::{
    collections::BTreeSet,
    ffi::CString,
    fs, io,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::{Path, PathBuf},
};

/// Where the new root is made: over a directory that every system has. The mount is this process's own.
const BASE: &str = "/tmp";

/// The most files in a private `/tmp`.
const TMP_FILES: u32 = 65_536;

/// The devices that every program may use.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The links in `/dev` to what a process has open.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Makes the root, in a mount namespace of this process's own. `enter` is for a process in the new pid namespace.
pub(super) fn make(layout: &Layout, handles: &[OwnedFd], who: Who) -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| named("make mounts private", error.into()))?;
    // Found before the new root hides what lies below it.
    let sources = Sources::find(layout, handles)?;
    let root = Path::new(BASE);
    tmpfs(root, "mode=755,size=16m")?;
    sources.bind_system(layout, root, |path| !is_in_tmp(path))?;
    devices(root)?;
    fs::create_dir_all(root.join("proc"))?;
    made_up(root, who)?;
    tmp(root, layout.tmp_bytes)?;
    sources.bind_system(layout, root, is_in_tmp)?;
    sources.bind_grants(layout, root)?;
    keep(layout, root)?;
    // Only now: what lies on it is mounted, and mounts of their own stay writable.
    let closed = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount(root, closed, "").map_err(|error| named("close the root", error.into()))
}

/// Enters the root, and leaves the host's for good. For the first process of a pid namespace.
pub(super) fn enter() -> io::Result<()> {
    let proc = Path::new(BASE).join("proc");
    // Read only: the settings of the kernel are root's files, and a program that root started owns them.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", &proc, "proc", flags, None).map_err(|error| named("mount /proc", error.into()))?;
    std::env::set_current_dir(BASE)?;
    rustix::process::pivot_root(".", ".").map_err(|error| named("enter the root", error.into()))?;
    // The old root lies over the new one, and is taken off.
    unmount(".", UnmountFlags::DETACH).map_err(|error| named("leave the host's root", error.into()))?;
    std::env::set_current_dir("/")
}

/// What is mounted, found by name or handle.
struct Sources {
    system: Vec<Option<Found>>,
    grants: Vec<Source>,
}

/// A part of the system.
enum Found {
    Mounted(Source),
    /// A link such as `/bin`, which is made anew.
    Link(std::path::PathBuf),
}

impl Sources {
    fn find(layout: &Layout, handles: &[OwnedFd]) -> io::Result<Self> {
        let system = layout.system.iter().map(|path| match fs::read_link(path) {
            Ok(target) => Ok(Some(Found::Link(target))),
            Err(_) => Ok(Source::at(path)?.map(Found::Mounted)),
        });
        let system = system.collect::<io::Result<_>>()?;
        Ok(Self { system, grants: handles.iter().map(Source::of_handle).collect::<io::Result<_>>()? })
    }

    /// Mounts the parts of the system at these paths.
    fn bind_system(&self, layout: &Layout, root: &Path, is_meant: fn(&Path) -> bool) -> io::Result<()> {
        for (path, found) in layout.system.iter().zip(&self.system).filter(|(path, _)| is_meant(path)) {
            match found {
                None => {}
                Some(Found::Mounted(source)) => source.bind(root, path, false)?,
                Some(Found::Link(target)) => link(root, path, target)?,
            }
        }
        Ok(())
    }

    /// Mounts what is granted, over all else: it may lie in the host's `/tmp`, and so in the private one.
    fn bind_grants(&self, layout: &Layout, root: &Path) -> io::Result<()> {
        // A path that lies below another comes after it, so that it is mounted over it.
        let mut grants: Vec<_> = layout.grants.iter().zip(&self.grants).collect();
        grants.sort_by_key(|(grant, _)| grant.at.components().count());
        grants.into_iter().try_for_each(|(grant, source)| source.bind(root, &grant.at, grant.is_writable))
    }
}

/// Whether this lies in `/tmp`, and is mounted over the private one.
fn is_in_tmp(path: &Path) -> bool {
    path.starts_with("/tmp") && path != Path::new("/tmp")
}

fn link(root: &Path, path: &Path, target: &Path) -> io::Result<()> {
    let at = inside(root, path);
    if let Some(parent) = at.parent() {
        fs::create_dir_all(parent)?;
    }
    symlink(target, at)
}

fn devices(root: &Path) -> io::Result<()> {
    let dev = root.join("dev");
    fs::create_dir_all(dev.join("shm"))?;
    for name in DEVICES {
        let at = Path::new("/dev").join(name);
        if let Some(device) = Source::at(&at)? {
            device.bind_device(root, &at)?;
        }
    }
    LINKS.iter().try_for_each(|(name, target)| symlink(target, dev.join(name)))?;
    tmpfs(&dev.join("shm"), "mode=1777,size=16m,nr_inodes=4096")
}

/// Writes the files that stand for those which name the users and machines of the host.
fn made_up(root: &Path, who: Who) -> io::Result<()> {
    fs::create_dir_all(root.join("etc"))?;
    for (path, text) in MADE_UP {
        let text = text.replace("{uid}", &who.uid.to_string()).replace("{gid}", &who.gid.to_string());
        fs::write(root.join(path), text)?;
    }
    Ok(())
}

/// A `/tmp` of its own.
fn tmp(root: &Path, bytes: u64) -> io::Result<()> {
    let tmp = root.join("tmp");
    fs::create_dir_all(&tmp)?;
    // Each file takes memory of the kernel beside its content.
    tmpfs(&tmp, &format!("mode=1777,size={bytes},nr_inodes={TMP_FILES}"))
}

/// Mounts over themselves, read only, the paths that are not written. The directories that lead there are mounted over
/// themselves too: a mount is neither renamed nor removed, so that nothing else comes to stand under the path.
fn keep(layout: &Layout, root: &Path) -> io::Result<()> {
    let exists = |path: &&PathBuf| inside(root, path).symlink_metadata().is_ok();
    let kept: Vec<&PathBuf> = layout.kept.iter().filter(exists).collect();
    // In this order a directory comes before what lies in it, and so is not mounted over that.
    let leading: BTreeSet<&Path> = kept.iter().flat_map(|path| leading_to(path, layout)).collect();
    let leading = leading.into_iter().map(|directory| (directory, true));
    for (path, is_writable) in leading.chain(kept.into_iter().map(|path| (path.as_path(), false))) {
        if let Some(source) = Source::at(&inside(root, path))? {
            source.bind(root, path, is_writable)?;
        }
    }
    Ok(())
}

/// The directories between a path and what is granted for writing, without that: it is a mount already.
fn leading_to<'a>(path: &'a Path, layout: &'a Layout) -> impl Iterator<Item = &'a Path> {
    let is_within = |directory: &Path, grant: &Grant| {
        grant.is_writable && directory != grant.at && directory.starts_with(&grant.at)
    };
    let above = path.ancestors().skip(1);
    above.take_while(move |directory| layout.grants.iter().any(|grant| is_within(directory, grant)))
}

fn tmpfs(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, options.as_c_str())
        .map_err(|error| named(&format!("mount a tmpfs on '{}'", at.display()), error.into()))
}
