//! Where snapshots are kept.
//!
//! ```text
//!   DIRECTORY/KEY/initramfs
//!                 snapshot     KEY: a hash of all that both are made of
//! ```

use super::{ended::Broken, initramfs, parts::Parts, qemu};
use crate::protocol::VERSION;
use sha2::{Digest as _, Sha256};
use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

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
        let initramfs =
            initramfs::build(parts).map_err(|error| Broken::new(format!("no initramfs: {error}")))?;
        let kernel = fs::read(&parts.kernel)
            .map_err(|error| Broken::new(format!("the kernel '{}': {error}", parts.kernel.display())))?;
        let mut hash = Sha256::new();
        for part in [version(&parts.qemu)?.as_bytes(), &kernel, &initramfs, &VERSION.to_be_bytes()] {
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

/// Whether there is a snapshot.
pub(super) fn holds(at: &Path) -> bool {
    at.join(SNAPSHOT).is_file() && at.join(INITRAMFS).is_file()
}

/// Where the snapshot with this key is.
pub(super) fn place(directory: &Path, key: &str) -> PathBuf {
    directory.join(key)
}
