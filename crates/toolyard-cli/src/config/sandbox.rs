//! `[sandbox]`: what sandboxes give to every program in them.

use super::section::Section;
use std::path::{Path, PathBuf};
use toolyard::HostPattern;

/// What the process sandbox gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessSettings {
    /// Parts of the system, beside those that every program gets.
    pub(crate) system: Vec<PathBuf>,
    /// Whether what git runs is kept from being written.
    pub(crate) keeps_git: bool,
    /// The hosts that may have private addresses, where they are granted.
    pub(crate) allow_private: Vec<HostPattern>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self { system: Vec::new(), keeps_git: true, allow_private: Vec::new() }
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
    section.finish();
    settings
}
