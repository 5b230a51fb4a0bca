//! The machines of one configuration.

use super::{
    call::Call,
    ended::{Broken, End, Ended},
    heard::{Heard, Next},
    machine::Machine,
    parts::Parts,
    qemu,
    snapshot::Snapshot,
    store::{self, Base, Held, INITRAMFS, SNAPSHOT},
};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tokio::{sync::OnceCell, task::spawn_blocking};
use toolyard_process::{Containment, Helper};

/// Machines of the same parts, in any sizes of memory. Cheap to clone; clones share their snapshots.
///
/// # Examples
/// ```no_run
/// # #[cfg(all(feature = "host", target_os = "linux", target_arch = "x86_64"))]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use toolyard_process::Helper;
/// use toolyard_vm::{Call, End, Machines, Wanted};
/// let parts = Wanted::default().find().map_err(|missing| missing[0].to_string())?;
/// let machines = Machines::new(parts, "/home/me/.cache/machines", Helper::this_program()?);
/// let call = Call::new("uname").variable("PATH", "/bin");
/// let ended = machines.run(128, call, std::future::pending()).await?;
/// assert_eq!(ended.end, End::Exited(0));
/// assert_eq!(ended.output.into_text(), "Linux\n");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Machines {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    parts: Parts,
    directory: PathBuf,
    containment: Containment,
    base: OnceCell<Base>,
    /// By memory in MiB.
    snapshots: Mutex<HashMap<u32, Arc<OnceCell<Arc<Snapshot>>>>>,
}

/// A snapshot that calls can be restored from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ready {
    /// Its file.
    pub snapshot: PathBuf,
    /// QEMU's arguments but for the sockets and for what restores it.
    pub arguments: Vec<std::ffi::OsString>,
}

impl Machines {
    /// Machines of these parts, whose snapshots are kept in this directory, and whose QEMU runs under this helper.
    /// Nothing is started or written yet. No one else may write in the directory.
    pub fn new(parts: Parts, directory: impl Into<PathBuf>, helper: Helper) -> Self {
        let inner = Inner {
            parts,
            directory: directory.into(),
            containment: Containment::Helper(helper),
            base: OnceCell::new(),
            snapshots: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes sure that there is a snapshot of a machine with this much memory in MiB: takes the one in the directory, or
    /// boots a machine, for which it takes seconds. [`run`](Self::run) does so as well.
    ///
    /// # Errors
    /// [`Broken`]: why there is none.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop a machine that boots.
    pub async fn ready(&self, memory_mib: u32) -> Result<Ready, Broken> {
        let snapshot = self.snapshot(memory_mib).await?;
        Ok(Ready { snapshot: snapshot.file.clone(), arguments: snapshot.arguments.clone() })
    }

    /// Runs a program in a machine of its own, with this much memory in MiB, until it ends or `stop` does. The machine is
    /// gone by then, whatever it does.
    ///
    /// # Errors
    /// [`Broken`] when there was no machine.
    ///
    /// # Cancel safety
    /// Dropping the future ends the machine, without waiting for it.
    pub async fn run(
        &self,
        memory_mib: u32,
        mut call: Call,
        stop: impl Future<Output = ()>,
    ) -> Result<Ended, Broken> {
        let mut heard = Heard::new(&mut call);
        let mut stop = pin!(stop);
        let mut machine = tokio::select! {
            biased;
            () = &mut stop => return Ok(heard.ended(End::Stopped, Ok(()))),
            restored = self.restored(memory_mib) => restored?,
        };
        let over = tokio::select! {
            biased;
            () = stop => Ok((End::Stopped, Ok(()))),
            over = Self::talk(&mut machine, call, &mut heard) => over,
        };
        machine.end().await;
        let (end, changes) = over?;
        Ok(heard.ended(end, changes))
    }

    async fn restored(&self, memory_mib: u32) -> Result<Machine, Broken> {
        self.snapshot(memory_mib).await?.restore().await
    }

    async fn talk(
        machine: &mut Machine,
        call: Call,
        heard: &mut Heard,
    ) -> Result<(End, Result<(), String>), Broken> {
        let Machine { from, to, .. } = machine;
        let mut sending = pin!(to.send(call.into_messages().map_err(Broken::new)?));
        let mut is_sent = false;
        loop {
            let next = tokio::select! {
                biased;
                message = Machine::hear(from) => match message {
                    Some(message) => heard.add(message),
                    None => heard.vanished(),
                },
                sent = &mut sending, if !is_sent => {
                    is_sent = true;
                    match sent {
                        // Something that does not fit, which the machine need not hear about.
                        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                            Next::Over(End::NotStarted(error.to_string()), Ok(()))
                        }
                        // A machine that has ended is heard.
                        Ok(()) | Err(_) => Next::Continue,
                    }
                }
            };
            if let Next::Over(end, changes) = next {
                return Ok((end, changes));
            }
        }
    }

    async fn snapshot(&self, memory_mib: u32) -> Result<Arc<Snapshot>, Broken> {
        let cell = {
            let mut snapshots = self.inner.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            snapshots.entry(memory_mib).or_default().clone()
        };
        let machines = self.clone();
        // In a task, so that a machine boots to its end although the call that needed it first has ended.
        let found =
            tokio::spawn(
                async move { cell.get_or_try_init(|| machines.find_or_make(memory_mib)).await.cloned() },
            );
        found.await.map_err(Broken::new)?
    }

    async fn find_or_make(&self, memory_mib: u32) -> Result<Arc<Snapshot>, Broken> {
        let base = self.inner.base.get_or_try_init(|| self.base()).await?;
        let key = base.key(&self.inner.parts, memory_mib);
        let place = store::place(&self.inner.directory, &key);
        let failed = |error: io::Error| Broken::new(format!("'{}': {error}", self.inner.directory.display()));
        let held = store::hold(&place).map_err(failed)?;
        if held.is_none() {
            store::create(&self.inner.directory).map_err(failed)?;
            let new =
                tempfile::Builder::new().prefix("new-").tempdir_in(&self.inner.directory).map_err(failed)?;
            fs::write(new.path().join(INITRAMFS), &base.initramfs).map_err(failed)?;
            let made = self.snapshot_at(new.path(), memory_mib, None);
            made.make(&made.file).await?;
            store::put(new.path(), &place).map_err(failed)?;
        }
        let held = held.map_or_else(|| store::hold(&place), |held| Ok(Some(held))).map_err(failed)?;
        store::sweep(&self.inner.directory, SystemTime::now());
        Ok(Arc::new(self.snapshot_at(&place, memory_mib, held)))
    }

    /// The snapshot that lies, or will lie, in this directory.
    fn snapshot_at(&self, at: &Path, memory_mib: u32, held: Option<Held>) -> Snapshot {
        Snapshot {
            qemu: self.inner.parts.qemu.clone(),
            arguments: qemu::arguments(&self.inner.parts, &at.join(INITRAMFS), memory_mib),
            file: at.join(SNAPSHOT),
            containment: self.inner.containment.clone(),
            _held: held,
        }
    }

    async fn base(&self) -> Result<Base, Broken> {
        let machines = self.clone();
        spawn_blocking(move || Base::of(&machines.inner.parts)).await.map_err(Broken::new)?
    }
}
