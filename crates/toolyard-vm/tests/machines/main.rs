//! Programs in real virtual machines. Where QEMU, a kernel or the agent are missing, they are skipped with a line.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod apart;
mod endings;
mod files;
#[path = "../programs/found.rs"]
mod found;
mod session;

use std::{
    fs,
    future::pending,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use toolyard_process::Helper;
use toolyard_vm::{Call, Ended, Machines};

/// A program whose main can help.
const ENGINE: &str = env!("CARGO_BIN_EXE_toolyard-vm-engine");

/// The memory of the tests' machines in MiB.
const MEMORY: u32 = 128;

/// Machines, with a mark that all their processes bear: the path by which they know their snapshots. The snapshots
/// themselves stay for the next run.
struct Yard {
    machines: Machines,
    place: TempDir,
}

impl Yard {
    fn new() -> Option<Self> {
        let parts = found::parts()?;
        let place = tempfile::tempdir().unwrap();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
        fs::create_dir_all(&kept).unwrap();
        symlink(kept, place.path().join("machines")).unwrap();
        let machines = Machines::new(parts, place.path().join("machines"), Helper::program(ENGINE));
        Some(Self { machines, place })
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("machines")
    }

    /// Runs a call to its end.
    async fn run(&self, call: Call) -> Ended {
        self.machines.run(MEMORY, call, pending()).await.unwrap()
    }

    /// How many living processes bear the mark.
    fn census(&self) -> usize {
        let mark = self.place.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter(|entry| bears(&entry.path(), mark)).count()
    }

    /// Waits until no process with the mark is left.
    async fn until_empty(&self) {
        for _ in 0..1500 {
            if self.census() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} processes are left", self.census());
    }
}

fn bears(process: &Path, mark: &str) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let is_dead = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    !is_dead && String::from_utf8_lossy(&line).contains(mark)
}

/// `sh -c` with this command.
fn shell(command: &str) -> Call {
    Call::new("sh").arguments(["-c", command]).variable("PATH", "/bin")
}
