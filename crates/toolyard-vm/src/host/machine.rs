//! A machine that runs: QEMU, under its helper.
//!
//! ```text
//!   QEMU ─── connects to ─► port, monitor: sockets in a directory of this user alone, which is gone
//!     │                     once both are connected
//!     └─ killed at its end or when this is dropped, and by its helper when this process has died (SB-7)
//! ```

use super::{ended::Broken, lines::Lines, qemu, qmp::Qmp};
use crate::protocol::{FromGuest, ToGuest, line};
use std::{ffi::OsString, io, path::Path, time::Duration};
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};
use toolyard_process::{Containment, HeadTail, OutputReader, Processes, Program};

/// How long QEMU may take to start and connect.
const START: Duration = Duration::from_secs(30);

/// How many bytes of what QEMU prints are kept for an error.
const PRINTED_BYTES: usize = 4 << 10;

/// How much is read from a machine at a time.
const READ_BYTES: usize = 64 << 10;

/// A machine. Dropping it ends it at once.
pub(super) struct Machine {
    pub(super) qmp: Qmp,
    pub(super) from: Lines<BufReader<OwnedReadHalf>>,
    pub(super) to: Sender,
    qemu: Qemu,
}

/// The direction to the agent.
pub(super) struct Sender(OwnedWriteHalf);

/// QEMU's processes, which are killed when this is dropped: there is nothing that they would have to finish.
struct Qemu(Processes);

impl Drop for Qemu {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Machine {
    /// Starts QEMU with these arguments.
    ///
    /// # Errors
    /// Why there is no machine, with what QEMU printed.
    pub(super) async fn start(
        program: &Path,
        arguments: &[OsString],
        containment: &Containment,
    ) -> Result<Self, Broken> {
        let failed = |error: io::Error| Broken::new(format!("no virtual machine: {error}"));
        let place = tempfile::Builder::new().prefix("toolyard-vm-").tempdir().map_err(failed)?;
        let [port, monitor] = ["port", "monitor"].map(|name| place.path().join(name));
        let listeners = [UnixListener::bind(&port), UnixListener::bind(&monitor)];
        let [port_listener, monitor_listener] = listeners;
        let listeners = (port_listener.map_err(failed)?, monitor_listener.map_err(failed)?);
        let qemu = Program::new(program).args(arguments.iter().cloned()).args(qemu::sockets(&port, &monitor));
        let started = qemu.helper_name("toolyard-vm").start(containment).map_err(failed)?;
        let mut qemu = Qemu(started.processes);
        let mut printed = OutputReader::new(started.stdout);
        let connected = timeout(START, connected(listeners));
        let (port, monitor) = tokio::select! {
            biased;
            connected = connected => connected.map_err(io::Error::from).and_then(|connected| connected).map_err(failed)?,
            _ = qemu.0.ended() => return Err(Broken::new(format!("QEMU ended: {}", said(&mut printed).await))),
        };
        let qmp =
            timeout(START, Qmp::greeted(monitor)).await.map_err(io::Error::from).flatten().map_err(failed)?;
        let (from, to) = port.into_split();
        let from = Lines::new(BufReader::with_capacity(READ_BYTES, from));
        Ok(Self { qmp, from, to: Sender(to), qemu })
    }
}

async fn connected((port, monitor): (UnixListener, UnixListener)) -> io::Result<(UnixStream, UnixStream)> {
    Ok((port.accept().await?.0, monitor.accept().await?.0))
}

/// What QEMU printed before it ended.
async fn said(printed: &mut OutputReader) -> String {
    let mut kept = HeadTail::new(PRINTED_BYTES);
    while let Some(piece) = printed.read().await {
        kept.push(piece);
    }
    match kept.into_text().trim() {
        "" => "it said nothing".to_owned(),
        text => text.to_owned(),
    }
}

impl Sender {
    /// Says all of this to the agent.
    pub(super) async fn send(&mut self, messages: impl Iterator<Item = ToGuest>) -> io::Result<()> {
        for message in messages {
            self.0.write_all(&line(&message)?).await?;
        }
        Ok(())
    }
}

impl Machine {
    /// Ends it, and waits until its processes are gone, or cannot be ended.
    pub(super) async fn end(mut self) {
        self.qemu.0.kill();
        self.qemu.0.ended().await;
    }

    /// The next message of the agent; `None` when the machine has ended, or says what is no message.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn hear(from: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<FromGuest> {
        from.next().await.ok().flatten()
    }
}
