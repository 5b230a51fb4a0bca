//! The variables that every server gets: enough to find programs and home directories, and none that may be a secret.

use std::ffi::OsString;

#[cfg(not(windows))]
const NAMES: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

#[cfg(windows)]
const NAMES: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

/// Whether every server gets this variable of the program's environment, which therefore is no secret.
pub fn is_inherited(variable: &str) -> bool {
    NAMES.contains(&variable)
}

/// The variables among them that are set.
pub(crate) fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    NAMES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)))
}
