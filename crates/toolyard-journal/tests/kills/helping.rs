//! A program that the first life starts, and that goes on when that has ended: as long as it runs, no other life may have
//! the journal (JR-4). It writes a line to a file when the harness lets it, and ends.

use crate::child::Order;
use rustix::fs::OFlags;
use std::{fs::OpenOptions, io::Write, os::unix::fs::OpenOptionsExt, process::Command, time::Duration};
use tokio::runtime::Builder;
use toolyard_journal::{Journal, JournalError, Settings};
use toolyard_process::{Containment, OutputReader, Program};

/// Opened for reading and writing, a pipe has no end, and nobody is waited for.
const SCRIPT: &str = r#"exec 3<>"$1"; echo reads; read -r line <&3; echo "$line" >>"$2""#;

/// Starts it, in the life that it outlives, however that ends.
pub(crate) fn start(order: &Order) {
    let (pipe, written) = (order.directory.join("pipe"), order.directory.join("written"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let program = Program::new("/bin/sh").args(["-c", SCRIPT, "sh"]).arg(pipe).arg(written);
    // Whoever drops what is leaked here ends the program.
    let runtime = Box::leak(Box::new(Builder::new_current_thread().enable_all().build().unwrap()));
    runtime.block_on(async {
        let started = program.start(&Containment::Group).unwrap();
        Box::leak(Box::new(started.processes));
        let mut said = OutputReader::new(started.stdout);
        assert_eq!(said.read().await, Some(&b"reads\n"[..]));
    });
}

/// Whether it has done what it was to do: as it is let go on only after the first life, it had to before the next.
pub(crate) fn has_written(order: &Order) -> bool {
    std::fs::read_to_string(order.directory.join("written")).is_ok_and(|text| text == "go on\n")
}

/// Tries to open the journal while it runs, and lets it go on. The error says what was wrong.
pub(crate) fn let_go_on(order: &Order) -> Result<(), String> {
    let opened = Journal::open(order.journal(), Settings::default().lock_wait(Duration::ZERO));
    let is_refused = match opened {
        Err(JournalError::StillRuns { .. }) => Ok(()),
        Err(error) => Err(format!("the journal cannot be opened beside a program of its last life: {error}")),
        Ok(_) => Err("the journal was opened beside a program of its last life".to_owned()),
    };
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut pipe = options.open(order.directory.join("pipe")).unwrap();
    pipe.write_all(b"go on\n").unwrap();
    is_refused
}
