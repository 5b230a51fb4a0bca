//! Files that all that was started keeps open. In a test program of its own, because what is kept open is of the process.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs::{File, TryLockError};
use toolyard_process::{Containment, OutputReader, Program, keep_open};

fn containments() -> Vec<Containment> {
    #[cfg(target_os = "linux")]
    let all = vec![
        Containment::Group,
        Containment::Helper(toolyard_process::Helper::program(env!("CARGO_BIN_EXE_toolyard-process-engine"))),
    ];
    #[cfg(not(target_os = "linux"))]
    let all = vec![Containment::Group];
    all
}

/// JR-4: a lock of a process is free once all that it has started is gone, and not before; a helper holds it for its
/// programs, which do not have it. What starts after it was let go of has nothing to do with it.
#[tokio::test]
async fn a_lock_lasts_as_long_as_what_was_started() {
    let directory = tempfile::tempdir().unwrap();
    for (at, containment) in containments().into_iter().enumerate() {
        let path = directory.path().join(at.to_string());
        let lock = File::create(&path).unwrap();
        lock.lock().unwrap();
        let kept = keep_open(lock).unwrap();
        let mut running = Program::new("/bin/cat").piped_input().start(&containment).unwrap();
        running.processes.started().await.unwrap();
        let lists = Program::new("/bin/ls").args(["-l", "/proc/self/fd"]).start(&containment).unwrap();
        let (mut lines, mut listed) = (OutputReader::new(lists.stdout), String::new());
        while let Some(piece) = lines.read().await {
            listed += &String::from_utf8_lossy(piece);
        }
        drop(lists.processes);
        drop(kept);
        let mut later = Program::new("/bin/cat").piped_input().start(&containment).unwrap();
        later.processes.started().await.unwrap();

        let next = File::open(&path).unwrap();
        assert!(matches!(next.try_lock(), Err(TryLockError::WouldBlock)), "{containment:?}");
        if cfg!(target_os = "linux") {
            let has_it = listed.contains(path.to_str().unwrap());
            assert_eq!(has_it, containment == Containment::Group, "{listed}");
        }
        drop(running.stdin.take());
        running.processes.ended().await;
        // Blocks no longer than the listing's helper lives.
        next.lock().unwrap();
        drop(later.stdin.take());
        later.processes.ended().await;
    }
}
