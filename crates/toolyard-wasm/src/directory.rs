//! A directory that a guest gets.

use std::{io, path::PathBuf};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// A directory of this machine that a guest reaches, with all below it and nothing beside it: neither `..` nor a link
/// leads out of it.
///
/// # Examples
/// ```
/// # #[cfg(feature = "runtime")] {
/// use toolyard_wasm::{Directory, Run};
/// let run = Run::new()
///     .directory(Directory::at("/srv/texts", "."))
///     .directory(Directory::at("/srv/results", "results").writable());
/// # let _ = run;
/// # }
/// ```
#[derive(Debug)]
pub struct Directory {
    host: Host,
    guest: String,
    is_writable: bool,
}

#[derive(Debug)]
enum Host {
    Path(PathBuf),
    #[cfg(target_os = "linux")]
    Handle(std::fs::File),
}

impl Directory {
    /// The directory that stands at this path when the run begins, under a name for the guest: `.` for the one in which
    /// it starts.
    pub fn at(path: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self { host: Host::Path(path.into()), guest: guest.into(), is_writable: false }
    }

    /// This very directory, whatever becomes of its name.
    #[cfg(target_os = "linux")]
    pub fn of(handle: std::fs::File, guest: impl Into<String>) -> Self {
        Self { host: Host::Handle(handle), guest: guest.into(), is_writable: false }
    }

    /// Lets the guest write in it.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.is_writable = true;
        self
    }

    /// Opens it for a guest.
    pub(crate) fn open(&self, builder: &mut WasiCtxBuilder) -> io::Result<()> {
        let perms = if self.is_writable { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        let path = match &self.host {
            Host::Path(path) => path.clone(),
            // Under this name the kernel gives what the descriptor is, not what stands where it was opened.
            #[cfg(target_os = "linux")]
            Host::Handle(handle) => {
                use std::os::fd::AsRawFd as _;
                PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
            }
        };
        let opened = builder.preopened_dir(path, &self.guest, perms);
        opened.map(drop).map_err(|error| io::Error::other(format!("'{}': {error:#}", self.guest)))
    }
}
