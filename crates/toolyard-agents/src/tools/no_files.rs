//! Systems on which agents have no files: there are no paths that are resolved beneath a handle.

use std::path::{Path, PathBuf};
use toolyard::{AgentPath, FsGrant, SessionId};

/// The files that each agent may use: none.
#[derive(Debug, Clone)]
pub(crate) struct HostFiles;

impl HostFiles {
    pub(crate) fn new(_: Vec<PathBuf>) -> Self {
        Self
    }

    pub(crate) fn add(&self, _: (SessionId, AgentPath), _: u64, _: &Path, _: &[FsGrant]) {}

    pub(crate) fn remove(&self, _: &(SessionId, AgentPath), _: u64) {}
}
