//! Snapshots: a machine is booted, and what it is then is written to a file.

use super::{ended::Broken, machine::Machine, store::Held};
use crate::protocol::{FromGuest, VERSION};
use serde_json::json;
use std::{
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use toolyard_process::Containment;

/// How long a machine may take to boot: seconds without KVM, and more on a busy host.
const BOOT: Duration = Duration::from_secs(180);

/// How long it may take to be written.
const WRITE: Duration = Duration::from_secs(60);

/// How often to ask whether it has been.
const POLL: Duration = Duration::from_millis(10);

/// The name under which QEMU knows the file.
const NAME: &str = "snapshot";

/// Bytes a second, so many that it never waits.
const FAST: u64 = 1 << 40;

/// A snapshot with all that is needed to restore it.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) qemu: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) file: PathBuf,
    pub(super) containment: Containment,
    /// Keeps it from being removed; none while it is made.
    pub(super) _held: Option<Held>,
}

impl Snapshot {
    /// Boots a machine and writes what it is when its agent waits for a call.
    pub(super) async fn make(&self, to: &Path) -> Result<(), Broken> {
        let mut machine = Machine::start(&self.qemu, &self.arguments, &self.containment).await?;
        let hello = timeout(BOOT, Machine::hear(&mut machine.from)).await;
        match hello {
            Ok(Some(FromGuest::Hello { version: VERSION })) => {}
            Ok(Some(FromGuest::Hello { version })) => {
                let why =
                    format!("the agent speaks version {version} of the protocol, and this program {VERSION}");
                return Err(Broken::new(why));
            }
            Ok(_) => return Err(Broken::new("the virtual machine ended before its agent was ready")),
            Err(_) => {
                return Err(Broken::new(format!(
                    "the virtual machine did not boot within {} s",
                    BOOT.as_secs()
                )));
            }
        }
        let written = timeout(WRITE, write(&mut machine, to)).await;
        written
            .map_err(io::Error::from)
            .flatten()
            .map_err(|error| Broken::new(format!("no snapshot: {error}")))
    }

    /// A machine that goes on where the snapshot was made.
    pub(super) async fn restore(&self) -> Result<Machine, Broken> {
        let failed =
            |error: io::Error| Broken::new(format!("the snapshot '{}': {error}", self.file.display()));
        let file = File::open(&self.file).map_err(failed)?;
        let incoming = ["-incoming", "defer"].map(OsString::from);
        let arguments: Vec<OsString> = self.arguments.iter().cloned().chain(incoming).collect();
        let mut machine = Machine::start(&self.qemu, &arguments, &self.containment).await?;
        machine.qmp.give(NAME, file).await.map_err(failed)?;
        machine
            .qmp
            .execute("migrate-incoming", json!({"uri": format!("fd:{NAME}")}))
            .await
            .map_err(failed)?;
        Ok(machine)
    }
}

async fn write(machine: &mut Machine, to: &Path) -> io::Result<()> {
    let qmp = &mut machine.qmp;
    qmp.execute("migrate-set-parameters", json!({"max-bandwidth": FAST})).await?;
    qmp.give(NAME, File::create_new(to)?).await?;
    qmp.execute("migrate", json!({"uri": format!("fd:{NAME}")})).await?;
    loop {
        let state = qmp.execute("query-migrate", json!({})).await?;
        match state["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed" | "cancelled") => return Err(io::Error::other("QEMU could not write it")),
            _ => sleep(POLL).await,
        }
    }
}
