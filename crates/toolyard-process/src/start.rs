//! Starts a program.

use crate::{
    Containment, Input, Output, Processes, Program, group, pipes,
    processes::{Orders, Progress, Reach},
};
use std::io;
use tokio::{runtime::Handle, sync::watch};

/// A program that was started. Whoever drops [`processes`](Self::processes) ends it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Started {
    /// Its standard input, if that is a pipe. Dropping it is the end of the input.
    pub stdin: Option<Input>,
    /// Its standard input, if that is a socket.
    #[cfg(unix)]
    pub socket: Option<tokio::net::UnixStream>,
    /// Its standard output; its standard error as well unless that is apart. The end of it may come long after the
    /// program has ended, if other processes hold it: see `OutputReader::drain`.
    pub stdout: Output,
    /// Its standard error, if that is apart.
    pub stderr: Option<Output>,
    /// Its way out, if it is confined and [has one](crate::Confinement::door).
    #[cfg(target_os = "linux")]
    pub door: Option<crate::Door>,
    /// All its processes.
    pub processes: Processes,
}

impl Program {
    /// Starts the program. Under a helper it may turn out only later that it cannot be started:
    /// [`Processes::started`].
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when a process cannot be given what it is to be given, or its helper
    /// not so much of it (`LAUNCH_BYTES_MAX`); otherwise those of the system. Outside of a tokio runtime nothing is
    /// started.
    ///
    /// # Panics
    /// When the tokio runtime has no I/O driver.
    pub fn start(self, containment: &Containment) -> io::Result<Started> {
        self.check()?;
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (ours, theirs) = pipes::open(&self)?;
        let orders = Orders::default();
        let (progress, seen) = watch::channel(Progress::Starting);
        #[cfg(target_os = "linux")]
        let mut door = None;
        let (reach, id) = match containment {
            #[cfg(target_os = "linux")]
            Containment::Helper(helper) => {
                let begun = crate::helped::start(self, helper, theirs)?;
                let id = begun.helped.id();
                runtime.spawn(begun.helped.watch(orders.clone(), progress));
                door = begun.door;
                (Reach::Helper(begun.socket.into()), id)
            }
            #[cfg(target_os = "linux")]
            Containment::Group if self.confinement.is_some() => {
                let why = "a program is confined by a helper, and this program is none: its main must begin with \
                           toolyard_process::help_if_asked()";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            Containment::Group => {
                let (members, group) = group::start(self, theirs)?;
                let id = members.id();
                runtime.spawn(members.watch(orders.clone(), progress));
                (Reach::Group(group), id)
            }
        };
        let processes = Processes::new(seen, orders, reach, id);
        Ok(Started {
            stdin: ours.stdin,
            #[cfg(unix)]
            socket: ours.socket,
            stdout: ours.stdout,
            stderr: ours.stderr,
            #[cfg(target_os = "linux")]
            door,
            processes,
        })
    }
}
