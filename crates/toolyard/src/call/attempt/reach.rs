//! What a call may touch where it runs (SM-2).
//!
//! ```text
//!   grants of its agent and of those above it ─┐
//!   rw if its tool writes or executes, else r ─┼─► paths, each in one mode ─► open ─► handles
//!   the paths that its arguments declare ──────┘   (all must agree)
//!   patterns of hosts that are granted ──────────► host
//! ```
//!
//! Nothing of it is computed for a call whose back-end does not ask.

use crate::{
    agent::{Agent, Permissions},
    call::attempt::backend::{Execution, SandboxError},
    gate,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard_core::{Capabilities, FsGrant, FsMode, Host, Opened, PathScope, Sandbox, SideEffects};

/// What a call may touch: files of its workspace, and hosts (SM-2). A sandbox gives it this and no more.
pub struct Reach<'a> {
    sandbox: Sandbox,
    scope: Option<&'a dyn PathScope>,
    paths: Vec<ReachedPath>,
    permissions: &'a Arc<Permissions>,
}

/// The hosts that a call may reach, for whoever judges them while it runs.
#[derive(Debug, Clone)]
pub struct ReachedHosts {
    permissions: Arc<Permissions>,
}

/// A path that a call may use: a directory with everything below it, or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachedPath {
    /// The path, relative to the workspace's root; `.` for the root itself.
    pub path: PathBuf,
    /// How it may be used.
    pub mode: FsMode,
}

impl ReachedPath {
    /// The paths that a call may use by these grants alone: what [`Reach::paths`] says of one whose agent has them and whose
    /// arguments name no paths.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{FsGrant, FsMode, ReachedPath, SideEffects};
    /// let grants = [FsGrant::new(FsMode::Write, "in")?, FsGrant::new(FsMode::Read, "in")?];
    /// let reached = ReachedPath::granted(&grants, SideEffects::Write);
    /// assert_eq!((reached.len(), reached[0].mode), (1, FsMode::ReadWrite));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn granted(grants: &[FsGrant], side_effects: SideEffects) -> Vec<Self> {
        common(&[grants], writes(side_effects))
    }
}

/// A path that a call may use, by handle.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedPath {
    /// The path and its mode.
    pub of: ReachedPath,
    /// What stands there. Never a link.
    pub opened: Opened,
}

impl Execution<'_> {
    /// What the call may touch. This may read the disk.
    ///
    /// Files: what its agent and all agents above it may use, or the whole workspace if none of them is bounded; for
    /// writing only if its tool writes or executes. If the tool declares which of its arguments are paths, and neither
    /// executes nor may reach a host, the call gets those paths alone.
    ///
    /// # Errors
    /// [`SandboxError::Unreachable`] for a path among its arguments that leads out of the workspace by now.
    ///
    /// # Examples
    /// What a sandbox mounts for a call:
    /// ```
    /// use std::{fs::File, path::PathBuf};
    /// use toolyard::{Execution, Opened, OpenedPath, SandboxError};
    ///
    /// fn mounts(execution: &Execution<'_>) -> Result<Vec<(PathBuf, File)>, SandboxError> {
    ///     let mount = |OpenedPath { of, opened, .. }| match opened {
    ///         Opened::Directory(handle) | Opened::File(handle) => Some((of.path, handle)),
    ///         _ => None,
    ///     };
    ///     Ok(execution.reach()?.open()?.into_iter().filter_map(mount).collect())
    /// }
    /// # let _ = mounts;
    /// ```
    pub fn reach(&self) -> Result<Reach<'_>, SandboxError> {
        let (call, entry) = (self.attempt.at(), &self.attempt.work().entry);
        let agent: &Agent = call.session();
        let scope = agent.scope.as_ref().map(|scope| &***scope);
        let mut reach = Reach {
            sandbox: self.confinement.sandbox,
            scope,
            paths: Vec::new(),
            permissions: &agent.permissions,
        };
        let Some(scope) = scope else { return Ok(reach) };
        let declared = match reach.reaches_hosts() {
            true => None,
            false => gate::declared_paths(entry, self.args, scope)
                .map_err(|error| reach.unreachable(Path::new("."), error.message))?,
        };
        let bounds = reach.capabilities().filter_map(Capabilities::fs_grants).chain(declared.as_deref());
        reach.paths = common(&bounds.collect::<Vec<_>>(), writes(entry.spec().side_effects));
        Ok(reach)
    }
}

impl Reach<'_> {
    /// The root of the workspace, as a person would name it; `None` without a workspace, and then there are no paths.
    pub fn root(&self) -> Option<&Path> {
        self.scope.map(PathScope::root)
    }

    /// The paths it may use, a path before those below it. One is listed below another only if it may be used in more
    /// ways.
    pub fn paths(&self) -> &[ReachedPath] {
        &self.paths
    }

    /// Opens the paths, each through the workspace's own handle and without following a link. A path that does not exist
    /// is its nearest directory, for its name alone; a granted name that is a link grants nothing and is left out. This
    /// blocks the thread.
    ///
    /// # Errors
    /// [`SandboxError::Unreachable`] for a path that cannot be opened.
    pub fn open(&self) -> Result<Vec<OpenedPath>, SandboxError> {
        let Some(scope) = self.scope else { return Ok(Vec::new()) };
        let mut all = Vec::with_capacity(self.paths.len());
        for of in &self.paths {
            match scope.open(&of.path).map_err(|error| self.unreachable(&of.path, error.to_string()))? {
                Opened::Link => {}
                opened => all.push(OpenedPath { of: of.clone(), opened }),
            }
        }
        Ok(all)
    }

    /// The hosts that it may reach, apart from the call; `None` if there is none.
    pub fn hosts(&self) -> Option<ReachedHosts> {
        self.reaches_hosts().then(|| ReachedHosts { permissions: self.permissions.clone() })
    }

    /// Whether it may reach this host: somebody has granted it by name or pattern, and nobody above leaves it out. Where
    /// no hosts are bounded, none is granted either.
    pub fn host(&self, host: &Host) -> bool {
        self.reaches_hosts() && all_grant(self.permissions, host)
    }

    /// Whether there may be a host that it may reach.
    pub fn reaches_hosts(&self) -> bool {
        let mut granted = self.capabilities().filter_map(Capabilities::net_patterns).peekable();
        granted.peek().is_some() && granted.all(|patterns| !patterns.is_empty())
    }

    fn capabilities(&self) -> impl Iterator<Item = &Capabilities> {
        self.permissions.capabilities()
    }

    fn unreachable(&self, path: &Path, why: String) -> SandboxError {
        SandboxError::Unreachable { sandbox: self.sandbox, path: path.to_owned(), why }
    }
}

impl ReachedHosts {
    /// Whether the call may reach this host: [`Reach::host`].
    pub fn covers(&self, host: &Host) -> bool {
        all_grant(&self.permissions, host)
    }
}

/// Whether nobody leaves this host out.
fn all_grant(permissions: &Permissions, host: &Host) -> bool {
    permissions.capabilities().all(|capabilities| capabilities.host(host))
}

/// Whether calls with these side effects may write files.
fn writes(side_effects: SideEffects) -> bool {
    matches!(side_effects, SideEffects::Write | SideEffects::Execute)
}

/// The paths on which all lists of grants agree; the whole workspace if there is no list.
fn common(lists: &[&[FsGrant]], writes: bool) -> Vec<ReachedPath> {
    let may = |mode, path: &Path| lists.iter().all(|list| list.iter().any(|grant| grant.covers(mode, path)));
    // What is granted changes only where a grant begins. A path comes before those below it.
    let begins = lists.iter().flat_map(|list| list.iter().map(FsGrant::path));
    let begins: BTreeSet<&Path> = begins.chain([Path::new("")]).collect();
    let mut common: Vec<ReachedPath> = Vec::new();
    for path in begins {
        let mode = match (may(FsMode::Read, path), writes && may(FsMode::Write, path)) {
            (true, true) => FsMode::ReadWrite,
            (true, false) => FsMode::Read,
            (false, true) => FsMode::Write,
            (false, false) => continue,
        };
        let is_within = |above: &ReachedPath| {
            let above_path = above.path.strip_prefix(".").unwrap_or(&above.path);
            path.starts_with(above_path) && (above.mode == FsMode::ReadWrite || above.mode == mode)
        };
        if !common.iter().any(is_within) {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            common.push(ReachedPath { path: path.to_owned(), mode });
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &str) -> Vec<FsGrant> {
        let grant = |word: &str| {
            let (mode, path) = word.split_once(':').expect("mode:path");
            let mode = match mode {
                "r" => FsMode::Read,
                "w" => FsMode::Write,
                _ => FsMode::ReadWrite,
            };
            FsGrant::new(mode, path).expect("a plain path")
        };
        text.split_whitespace().map(grant).collect()
    }

    fn shown(lists: &[&str], writes: bool) -> String {
        let lists: Vec<_> = lists.iter().map(|list| grants(list)).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let one = |reached: &ReachedPath| {
            let mode = match reached.mode {
                FsMode::Read => "r",
                FsMode::Write => "w",
                FsMode::ReadWrite => "rw",
            };
            format!("{mode}:{}", reached.path.display())
        };
        common(&lists, writes).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// SM-2: the whole workspace where nothing bounds it, for writing only if the tool writes.
    #[test]
    fn without_bounds_the_whole_workspace_is_reached() {
        assert_eq!(shown(&[], true), "rw:.");
        assert_eq!(shown(&[], false), "r:.");
        assert_eq!(shown(&[""], true), "", "an empty list grants nothing");
    }

    /// SM-2: all lists must agree, and a path is listed once for what it may be used for.
    #[test]
    fn all_lists_must_agree() {
        for (lists, writing, reading) in [
            (&["rw:."][..], "rw:.", "r:."),
            (&["r:. rw:out"], "r:. rw:out", "r:."),
            (&["r:docs rw:docs/out r:docs/a"], "r:docs rw:docs/out", "r:docs"),
            (&["w:in r:in"], "rw:in", "r:in"),
            (&["w:in"], "w:in", ""),
            (&["rw:a", "rw:a/b r:c"], "rw:a/b", "r:a/b"),
            (&["rw:.", "r:a", "rw:a/b rw:c"], "r:a/b", "r:a/b"),
            (&["rw:a", "rw:b"], "", ""),
            (&["rw:a", "rw:ab rw:a-b rw:a/b"], "rw:a/b", "r:a/b"),
        ] {
            assert_eq!([shown(lists, true), shown(lists, false)], [writing, reading], "{lists:?}");
        }
    }
}
