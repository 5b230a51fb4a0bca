//! What other processes do, learned from a named pipe that they write to or hold open.
#![cfg(unix)]

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// How long to wait for what is expected.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines that others write into a named pipe, until the last of them has closed it.
pub(crate) struct NamedPipe {
    lines: mpsc::Receiver<String>,
}

impl NamedPipe {
    /// Makes a pipe of this name. Whoever opens it to write waits for nothing: a thread reads it to its end.
    pub(crate) fn make(path: &Path) -> Self {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let (send, lines) = mpsc::channel();
        let path = path.to_owned();
        thread::spawn(move || {
            for line in BufReader::new(File::open(path).unwrap()).lines() {
                let _ = send.send(line.unwrap()); // the test may have seen enough
            }
        });
        Self { lines }
    }

    /// Waits for a line with this text.
    pub(crate) fn until(&self, what: &str) {
        while !self.lines.recv_timeout(PATIENCE).expect(what).contains(what) {}
    }

    /// Waits until nobody has it open to write: whoever had is gone.
    pub(crate) fn end(self) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("a process still has the pipe open"),
            }
        }
    }
}
