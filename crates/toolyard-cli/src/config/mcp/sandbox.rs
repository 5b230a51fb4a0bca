//! Where a server runs, and what it reaches there (SB-5).

use super::super::section::{Placed, Section};
use std::path::{Path, PathBuf};
use toolyard::HostPattern;
use toolyard_mcp::{ServerConfig, ServerConfinement, ServerLimits};

/// Where servers may run.
const SANDBOXES: &[(&str, bool)] = &[("host", false), ("process", true)];

/// The keys that say what a confined server reaches, and how much of it.
const KEYS: [&str; 6] = ["files", "hosts", "memory", "memory_per_process", "processes", "open_files"];

/// Takes what says where a server that is a program runs.
pub(super) fn take(server: ServerConfig, section: &mut Section<'_>, here: &Path) -> ServerConfig {
    let is_confined = section.choice("sandbox", SANDBOXES).is_some_and(|(is_confined, _)| is_confined);
    let files = section.strings("files").unwrap_or_default();
    let hosts = section.strings("hosts").unwrap_or_default();
    let confinement = files.into_iter().fold(ServerConfinement::new(), |confinement, file| {
        let (path, may_write) = path(&file, section, here);
        if may_write { confinement.write(path) } else { confinement.read(path) }
    });
    let hosts: Vec<_> = hosts
        .into_iter()
        .filter_map(|(host, at)| section.parsed("hosts", &at, host.parse::<HostPattern>()))
        .collect();
    let confinement = confinement.hosts(hosts).limited(limits(section));
    if is_confined { server.confined(confinement) } else { server }
}

/// Takes the limits of a confined server. Whether this machine keeps them is found when it is started.
fn limits(section: &mut Section<'_>) -> ServerLimits {
    ServerLimits {
        memory: section.size("memory"),
        memory_per_process: section.size("memory_per_process"),
        processes: section.small_count("processes").map(Into::into),
        open_files: section.small_count("open_files").map(Into::into),
    }
}

/// Reports what has no meaning for a server that is not confined.
pub(super) fn check(server: &ServerConfig, section: &Section<'_>, at: &std::ops::Range<usize>) {
    if server.confinement().is_some() {
        return;
    }
    for key in KEYS.into_iter().filter(|key| section.was_given(key)) {
        let what = "is for a confined server: set sandbox = \"process\" too";
        section.report(at, format!("{}{key} {what}", section.prefix()));
    }
}

/// Takes the keys of a server over HTTP, for which none of them has a meaning.
pub(super) fn take_none(section: &mut Section<'_>, at: &std::ops::Range<usize>) {
    for key in KEYS.into_iter().chain(["sandbox"]) {
        if section.take(key).is_some() {
            let what = "is for a server that is started here, and this one has a url";
            section.report(at, format!("{}{key} {what}", section.prefix()));
        }
    }
}

/// A path such as `rw:data`, relative to `here`, and whether it may be written.
fn path((text, at): &Placed<String>, section: &Section<'_>, here: &Path) -> (PathBuf, bool) {
    let (path, may_write) = match text.split_once(':') {
        Some(("rw", path)) => (path, true),
        Some(("r", path)) => (path, false),
        _ => (text.as_str(), false),
    };
    let path = here.join(path);
    if !path.exists() {
        section.report(at, format!("{}files: there is no '{}'", section.prefix(), path.display()));
    }
    (path, may_write)
}
