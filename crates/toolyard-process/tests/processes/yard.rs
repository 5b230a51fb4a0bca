//! A directory to run programs in, whose path marks their processes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use toolyard_process::{Containment, OutputReader, Processes, Program, Report};

pub(super) struct Yard(TempDir);

/// A shell that runs, whose output was read up to a line.
pub(super) struct Running {
    pub(super) output: OutputReader,
    pub(super) processes: Processes,
}

impl Yard {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    /// `sh -c` with this command, in the directory, marked with all that it starts.
    pub(super) fn shell(&self, command: &str) -> Program {
        let shell = Program::new("/bin/sh").args(["-c", command]);
        shell.env("PATH", "/usr/bin:/bin").env("MARK", self.path()).directory(self.path())
    }

    /// Starts a command, and waits until it has written `ready` on a line.
    pub(super) async fn ready(&self, command: &str, containment: &Containment) -> Running {
        let started = self.shell(command).start(containment).unwrap();
        let (mut output, mut text) = (OutputReader::new(started.stdout), String::new());
        while !text.ends_with("ready\n") {
            text += &String::from_utf8_lossy(output.read().await.expect("it ends before it is ready"));
        }
        Running { output, processes: started.processes }
    }

    /// Runs a command to its end. Returns its output and its report.
    pub(super) async fn run(&self, command: &str, containment: &Containment) -> (String, Report) {
        run(self.shell(command), containment).await
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.0.path().join(file).exists()
    }

    /// How many living processes bear the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn census(&self) -> usize {
        let mark = self.path();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter(|entry| bears(&entry.path(), mark.to_str().unwrap())).count()
    }

    /// Waits until no process with the mark is left.
    #[cfg(target_os = "linux")]
    pub(super) async fn until_empty(&self) {
        until("nothing is left", || self.census() == 0).await;
    }
}

/// Runs a program to its end. Returns its output and its report.
pub(super) async fn run(program: Program, containment: &Containment) -> (String, Report) {
    let mut started = program.start(containment).unwrap();
    let (mut output, mut bytes) = (OutputReader::new(started.stdout), Vec::new());
    let report = loop {
        tokio::select! {
            biased;
            report = started.processes.ended() => break report,
            Some(piece) = output.read() => bytes.extend_from_slice(piece),
        }
    };
    output.drain(|piece| bytes.extend_from_slice(piece));
    (String::from_utf8_lossy(&bytes).into_owned(), report)
}

#[cfg(target_os = "linux")]
fn bears(process: &Path, mark: &str) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let is_dead = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    !is_dead && String::from_utf8_lossy(&environment).contains(mark)
}

/// Waits until a condition holds, for half a minute at most.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came to this: {what}");
}
