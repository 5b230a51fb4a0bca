//! A snapshot that is restored by hand.

use std::{
    fs::File,
    io::{self, BufReader, Write as _},
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Stdio},
};
use toolyard_vm::{
    Ready,
    protocol::{Bytes, FromGuest, Run, ToGuest, line, read_line},
};

/// Any time that a clock can be set to: not before its machine was started.
const TIME_NS: u64 = 1_800_000_000_000_000_000;

/// Restores it, runs `busybox true` in it, and ends it.
pub(crate) fn call(qemu: &Path, ready: &Ready) -> io::Result<()> {
    let place = tempfile::tempdir()?;
    let socket = place.path().join("port");
    let listener = UnixListener::bind(&socket)?;
    let mut command = Command::new(qemu);
    command
        .args(&ready.arguments)
        .args(["-incoming", "fd:0"])
        .stdin(Stdio::from(File::open(&ready.snapshot)?));
    let mut qemu = command
        .arg("-chardev")
        .arg(format!("socket,id=port,server=off,path={}", socket.display()))
        .spawn()?;
    let (mut port, _) = listener.accept()?;
    let run = Run {
        is_merged: false,
        program: Bytes::from("/bin/busybox"),
        arguments: vec![Bytes::from("true")],
        variables: Vec::new(),
        directory: Bytes::from("/tmp"),
        returned: Vec::new(),
    };
    for message in [ToGuest::Begin { time_ns: TIME_NS, entropy: Bytes(vec![1; 64]) }, ToGuest::Run(run)] {
        port.write_all(&line(&message)?)?;
    }
    let mut said = BufReader::new(port);
    loop {
        match read_line(&mut said)? {
            FromGuest::Done => break,
            FromGuest::Failed(why) => return Err(io::Error::other(why)),
            _ => {}
        }
    }
    qemu.kill()?;
    qemu.wait()?;
    Ok(())
}
