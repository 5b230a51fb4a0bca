//! The directory that a program starts in.

#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The directory that a program starts in.
#[derive(Debug)]
pub(crate) enum Directory {
    /// That of this process.
    Inherited,
    /// The one at this path.
    Path(PathBuf),
    /// An open one, and its path for systems that cannot start a program in an open directory.
    #[cfg(unix)]
    Open { directory: OwnedFd, path: PathBuf },
}

impl Directory {
    /// The path by which a process that has this process's descriptors enters it. On Linux it finds an open directory
    /// among them, so that a link that was swapped since cannot lead elsewhere.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Inherited => None,
            Self::Path(path) => Some(path.clone()),
            #[cfg(unix)]
            Self::Open { directory, path } => {
                use std::os::fd::AsRawFd as _;
                let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
                Some(if cfg!(target_os = "linux") { own.into() } else { path.clone() })
            }
        }
    }

    /// Whether it is another one than that of this process.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_named(&self) -> bool {
        !matches!(self, Self::Inherited)
    }

    /// The path of it inside of what a program is confined to; `None` for the program's temporary directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn inside(&self) -> Option<&std::path::Path> {
        match self {
            Self::Inherited => None,
            Self::Path(path) | Self::Open { path, .. } => Some(path),
        }
    }

    /// Opens it, if it is not that of this process.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(self) -> std::io::Result<Option<OwnedFd>> {
        use rustix::fs::{Mode, OFlags, open};
        Ok(match self {
            Self::Inherited => None,
            // Without the right to read it: a process needs none to be in a directory.
            Self::Path(path) => {
                Some(open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
            }
            Self::Open { directory, .. } => Some(directory),
        })
    }
}
