//! What a confined server reaches.

use super::ServerLimits;
use std::path::PathBuf;
use toolyard::{ContentHash, HostPattern};
#[cfg(target_os = "linux")]
use toolyard_process::Cgroup;

/// What a server reaches that is confined (SB-5): the system's programs and libraries and its own program, read only; a
/// `/tmp` of its own, which is its home; the paths and the hosts that are named here; and nothing else. It lasts as long
/// as the server, whichever call it works for.
///
/// Hosts are reached through a proxy alone ([`toolyard_egress::Proxy`]), which variables such as `https_proxy` name.
/// Where none is named there is no network.
///
/// # Examples
/// A server for one repository, which lies beside its own program:
/// ```
/// use toolyard_mcp::{ServerConfig, ServerConfinement};
/// let git = ServerConfig::new("git", "/srv/py/bin/mcp-server-git").args(["--repository", "/srv/shop"]);
/// let git = git.confined(ServerConfinement::new().read("/srv/py").write("/srv/shop"));
/// # let _ = git;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfinement {
    pub(crate) system: Vec<PathBuf>,
    pub(crate) paths: Vec<ServerPath>,
    pub(crate) kept: Vec<PathBuf>,
    pub(crate) keeps_git: bool,
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) private: Vec<HostPattern>,
    pub(crate) limits: ServerLimits,
    #[cfg(target_os = "linux")]
    pub(crate) cgroup: Option<Cgroup>,
}

/// A path that a confined server reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPath {
    pub(crate) path: PathBuf,
    pub(crate) is_writable: bool,
}

impl Default for ServerConfinement {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerConfinement {
    /// A server that reaches the system and its own program, without limits.
    pub const fn new() -> Self {
        const NO_LIMITS: ServerLimits =
            ServerLimits { memory: None, memory_per_process: None, processes: None, open_files: None };
        Self {
            system: Vec::new(),
            paths: Vec::new(),
            kept: Vec::new(),
            keeps_git: true,
            hosts: Vec::new(),
            private: Vec::new(),
            limits: NO_LIMITS,
            #[cfg(target_os = "linux")]
            cgroup: None,
        }
    }

    /// Adds parts of the system that it reaches, read only: those that exist of these absolute paths.
    #[must_use]
    pub fn system<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.system.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Lets it read a file, or a directory with everything below it. A path that does not exist when the server starts
    /// is an error then.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(ServerPath { path: path.into(), is_writable: false });
        self
    }

    /// The same for reading and writing.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(ServerPath { path: path.into(), is_writable: true });
        self
    }

    /// Keeps paths from being written, if they exist, although they lie in what it may write (SB-11).
    #[must_use]
    pub fn keep<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.kept.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Sets whether `.git/hooks` and `.git/config` of the directories that it may write are kept from being written,
    /// which they are by default: git runs what stands there, and on the host.
    #[must_use]
    pub const fn keep_git(mut self, keeps: bool) -> Self {
        self.keeps_git = keeps;
        self
    }

    /// Lets it reach these hosts.
    #[must_use]
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Lets these hosts, if it reaches them, have addresses that are not public.
    #[must_use]
    pub fn allow_private(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        self.private.extend(hosts);
        self
    }

    /// Sets its limits.
    #[must_use]
    pub const fn limited(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Its limits.
    pub const fn limits(&self) -> ServerLimits {
        self.limits
    }

    /// Gives each of its starts a group in this one, which keeps the limits of all its processes together and ends them
    /// with it. Linux only.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn cgroup(mut self, cgroup: Cgroup) -> Self {
        self.cgroup = Some(cgroup);
        self
    }

    /// A hash of what is reached. Limits say how much of it, which makes no other server of it.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let Self {
            system,
            paths,
            kept,
            keeps_git,
            hosts,
            private,
            limits: _,
            #[cfg(target_os = "linux")]
                cgroup: _,
        } = self;
        let path = |path: &PathBuf| ContentHash::new("path").path(path).finish();
        let reached = |reached: &ServerPath| {
            let kind = if reached.is_writable { "write" } else { "read" };
            ContentHash::new(kind).path(&reached.path).finish()
        };
        let host = |host: &HostPattern| ContentHash::new("host").text(&host.to_string()).finish();
        ContentHash::new("confinement")
            .list(system.iter().map(path))
            .list(paths.iter().map(reached))
            .list(kept.iter().map(path))
            .text(if *keeps_git { "keeps git" } else { "" })
            .list(hosts.iter().map(host))
            .list(private.iter().map(host))
            .finish()
    }
}
