//! Where snapshots are kept, and for how long.
//!
//! ```text
//!   DIRECTORY/KEY/initramfs
//!                 snapshot     KEY: a hash of all that both are made of
//! ```
//!
//! Whoever uses a snapshot holds a shared lock on its directory, whose time of change says when it was last taken up. One
//! that nobody holds or has taken up for a while is removed.

use super::{ended::Broken, initramfs, parts::Parts, qemu};
use crate::protocol::VERSION;
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

/// How long a snapshot stays that nobody takes up. Configurations with other parts or sizes may take turns, and to boot
/// a machine costs seconds.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The name of the initramfs in its directory.
pub(super) const INITRAMFS: &str = "initramfs";

/// The name of the snapshot in its directory.
pub(super) const SNAPSHOT: &str = "snapshot";

/// What the machines of one configuration have in common, read once: how each of them begins.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) initramfs: Vec<u8>,
    hash: Sha256,
}

impl Base {
    /// Reads the parts, and asks QEMU for its version. This blocks the thread.
    pub(super) fn of(parts: &Parts) -> Result<Self, Broken> {
        parts.accel.check().map_err(Broken::new)?;
        Self::by(parts, &version(&parts.qemu)?)
    }

    /// The same for a QEMU of this version.
    fn by(parts: &Parts, version: &str) -> Result<Self, Broken> {
        let initramfs =
            initramfs::build(parts).map_err(|error| Broken::new(format!("no initramfs: {error}")))?;
        let kernel = fs::read(&parts.kernel)
            .map_err(|error| Broken::new(format!("the kernel '{}': {error}", parts.kernel.display())))?;
        let mut hash = Sha256::new();
        for part in [version.as_bytes(), &kernel, &initramfs, &VERSION.to_be_bytes()] {
            add(&mut hash, part);
        }
        Ok(Self { initramfs, hash })
    }

    /// The key of a machine with so much memory.
    pub(super) fn key(&self, parts: &Parts, memory_mib: u32) -> String {
        let mut hash = self.hash.clone();
        let arguments = qemu::arguments(parts, Path::new(INITRAMFS), memory_mib);
        arguments.iter().for_each(|argument| add(&mut hash, argument.as_bytes()));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What follows from its length, so that no two lists of parts are the same bytes.
fn add(hash: &mut Sha256, part: &[u8]) {
    hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(part);
}

fn version(qemu: &Path) -> Result<String, Broken> {
    let mut command = Command::new(qemu);
    command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().map_err(|error| Broken::new(format!("'{}': {error}", qemu.display())))?;
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        false => Err(Broken::new(format!("'{}' does not tell its version", qemu.display()))),
    }
}

/// Makes the directory for snapshots, for this user alone: whoever can write there can put a machine in the place of
/// another.
pub(super) fn create(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Puts what stands in a new directory under its key. Another process may have done so before.
pub(super) fn put(new: &Path, at: &Path) -> io::Result<()> {
    match fs::rename(new, at) {
        Err(_) if holds(at) => Ok(()),
        done => done,
    }
}

/// A snapshot that is in use: while this lives, nobody removes it.
#[derive(Debug)]
pub(super) struct Held {
    /// Its directory, with a lock.
    _directory: File,
}

/// Takes up the snapshot in this directory, if there is one. Waits while it is being removed.
pub(super) fn hold(at: &Path) -> io::Result<Option<Held>> {
    let directory = match File::open(at) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    directory.lock_shared()?;
    // One that was removed meanwhile may be there anew, and then this is not its lock.
    let locked = directory.metadata()?.ino();
    if !holds(at) || !fs::metadata(at).is_ok_and(|there| there.ino() == locked) {
        return Ok(None);
    }
    directory.set_modified(SystemTime::now())?;
    Ok(Some(Held { _directory: directory }))
}

/// Removes what nobody holds or has taken up for a while, what an end in the middle has left too. What cannot be removed
/// stays.
pub(super) fn sweep(directory: &Path, now: SystemTime) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(old) = File::open(entry.path()) else { continue };
        let changed = old.metadata().and_then(|about| about.modified());
        let is_old = changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > KEPT));
        if is_old && old.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether there is a snapshot.
fn holds(at: &Path) -> bool {
    at.join(SNAPSHOT).is_file() && at.join(INITRAMFS).is_file()
}

/// Where the snapshot with this key is.
pub(super) fn place(directory: &Path, key: &str) -> PathBuf {
    directory.join(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::accel::Accel;

    /// A directory for snapshots with one by this name, last taken up this long before `now`.
    fn with_snapshot(directory: &Path, name: &str, now: SystemTime, age: Duration) -> PathBuf {
        let at = place(directory, name);
        fs::create_dir(&at).unwrap();
        fs::write(at.join(SNAPSHOT), "").unwrap();
        fs::write(at.join(INITRAMFS), "").unwrap();
        File::open(&at).unwrap().set_modified(now - age).unwrap();
        at
    }

    /// Parts of which all that are read exist.
    fn parts(place: &Path) -> Parts {
        let write = |name: &str, text: &str| {
            fs::write(place.join(name), text).unwrap();
            place.join(name)
        };
        let all = ["virtio", "virtio_ring", "virtio_pci", "virtio_pci_modern_dev", "virtio_pci_legacy_dev"];
        let built_in = all.iter().chain(&["virtio_console"]).map(|name| format!("kernel/{name}.ko\n"));
        write("modules.builtin", &built_in.collect::<String>());
        Parts {
            qemu: "/usr/bin/qemu-system-x86_64".into(),
            kernel: write("kernel", "kernel"),
            modules: place.to_owned(),
            agent: write("agent", "agent"),
            busybox: write("busybox", "busybox"),
            add: Vec::new(),
            accel: Accel::Tcg,
        }
    }

    /// SB-4: a snapshot is that of one QEMU, kernel, initramfs, accelerator with its processor, and size: each change is
    /// another key, and no change is none.
    #[test]
    fn each_part_changes_the_key() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let key = |parts: &Parts, version: &str, memory| Base::by(parts, version).unwrap().key(parts, memory);
        let base = parts(place);
        let mut keys = vec![key(&base, "7.2", 128), key(&base, "7.2", 256), key(&base, "8.0", 128)];
        keys.push(key(&Parts { accel: Accel::Kvm, ..base.clone() }, "7.2", 128));
        for name in ["kernel", "agent", "busybox"] {
            fs::write(place.join(name), "other").unwrap();
            keys.push(key(&base, "7.2", 128));
            parts(place);
        }
        fs::write(place.join("tool"), "tool").unwrap();
        keys.push(key(&Parts { add: vec![place.join("tool")], ..base.clone() }, "7.2", 128));
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len(), "{keys:#?}");
        assert_eq!(key(&base, "7.2", 128), keys[0]);
    }

    /// SB-4: a snapshot that is in use stays, however old it is, and so does one that was used not long ago.
    #[test]
    fn what_nobody_uses_any_more_is_removed() {
        let (directory, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let with = |name, age| with_snapshot(directory.path(), name, now, age);
        let (old, recent, in_use) = (with("old", KEPT * 2), with("recent", KEPT / 2), with("used", KEPT * 2));
        let held = hold(&in_use).unwrap().unwrap();
        File::open(&in_use).unwrap().set_modified(now - KEPT * 2).unwrap();
        sweep(directory.path(), now);
        assert_eq!([&old, &recent, &in_use].map(|at| at.exists()), [false, true, true]);
        drop(held);
        sweep(directory.path(), now);
        assert!(!in_use.exists());
    }

    /// Taking one up makes it recent; where there is none, or half of one, nothing is held.
    #[test]
    fn what_is_taken_up_stays() {
        let (directory, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let at = with_snapshot(directory.path(), "old", now, KEPT * 2);
        drop(hold(&at).unwrap().unwrap());
        sweep(directory.path(), now);
        assert!(at.exists());
        fs::remove_file(at.join(SNAPSHOT)).unwrap();
        assert!(hold(&at).unwrap().is_none());
        assert!(hold(&directory.path().join("none")).unwrap().is_none());
    }
}
