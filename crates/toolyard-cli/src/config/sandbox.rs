//! `[sandbox]`: what sandboxes give to every program in them.

#[cfg(target_os = "linux")]
use super::section::Placed;
use super::section::Section;
use std::path::{Path, PathBuf};
use toolyard::HostPattern;
#[cfg(target_os = "linux")]
use toolyard_process::Cgroup;

/// What the process sandbox gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessSettings {
    /// Parts of the system, beside those that every program gets.
    pub(crate) system: Vec<PathBuf>,
    /// Whether what git runs is kept from being written.
    pub(crate) keeps_git: bool,
    /// The hosts that may have private addresses, where they are granted.
    pub(crate) allow_private: Vec<HostPattern>,
    /// How many bytes a call may send, and get, through the proxy, if that is set.
    pub(crate) net_bytes: Option<u64>,
    /// The delegated group in which calls have groups, if there is one.
    #[cfg(target_os = "linux")]
    pub(crate) cgroup: Option<Cgroup>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            system: Vec::new(),
            keeps_git: true,
            allow_private: Vec::new(),
            net_bytes: None,
            #[cfg(target_os = "linux")]
            cgroup: None,
        }
    }
}

/// Reads `[sandbox.process]`.
pub(super) fn process(mut section: Section<'_>) -> ProcessSettings {
    let mut settings = ProcessSettings::default();
    for (path, at) in section.strings("system").unwrap_or_default() {
        if !Path::new(&path).is_absolute() || path.contains("..") {
            let what = format!("{}system: '{path}' must be an absolute path without '..'", section.prefix());
            section.report(&at, what);
        }
        settings.system.push(path.into());
    }
    settings.keeps_git = section.boolean("keep_git").unwrap_or(settings.keeps_git);
    for (hosts, at) in section.strings("allow_private").unwrap_or_default() {
        settings.allow_private.extend(section.parsed("allow_private", &at, hosts.parse::<HostPattern>()));
    }
    settings.net_bytes = section.size("net_bytes");
    let cgroup = section.string("cgroup");
    #[cfg(target_os = "linux")]
    {
        settings.cgroup = cgroup.and_then(|path| open(&section, path));
    }
    #[cfg(not(target_os = "linux"))]
    drop(cgroup);
    section.finish();
    settings
}

/// Opens a delegated group. One that enforces nothing must not look like one that does (SB-4).
#[cfg(target_os = "linux")]
fn open(section: &Section<'_>, (path, at): Placed<String>) -> Option<Cgroup> {
    let opened = if Path::new(&path).is_absolute() {
        Cgroup::open(&path).map_err(|error| error.to_string())
    } else {
        Err("it is not an absolute path".to_owned())
    };
    let report = |why| {
        section.report(&at, format!("{}cgroup: '{path}' is no delegated group: {why}", section.prefix()))
    };
    opened.map_err(report).ok()
}
