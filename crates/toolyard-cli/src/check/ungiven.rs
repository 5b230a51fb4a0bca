//! Which of the paths that calls of a tool may use its sandbox cannot be given: such calls are refused (SB-4).

use crate::{sandboxes, setup::Setup};
use toolyard::{FsMode, FsRequirement, PathScope as _, ReachedPath, Sandbox, SideEffects, ToolSpec};
use toolyard_sandbox::{ungiven, unread};
use toolyard_tools::Workspace;

/// What cannot be given to this sandbox.
pub(super) fn found(setup: &Setup, spec: &ToolSpec, sandbox: Sandbox) -> Option<String> {
    if names_its_paths(setup, spec, sandbox) {
        among_arguments(spec, sandbox)
    } else {
        granted(setup, spec, sandbox)
    }
}

/// Whether a call may use the paths among its arguments alone (SM-2).
fn names_its_paths(setup: &Setup, spec: &ToolSpec, sandbox: Sandbox) -> bool {
    let reaches_hosts = sandboxes::reaches_hosts(sandbox)
        && setup.config.policy.capabilities.net_patterns().is_some_and(|net| !net.is_empty());
    let says_all = !matches!(spec.side_effects, SideEffects::Execute | SideEffects::Network);
    says_all && !reaches_hosts && !spec.requires_fs.is_empty() && spec.requires_net.is_empty()
}

/// An argument whose path is written and not read. Grants are no matter here: a path that they do not allow is refused
/// before any sandbox is asked.
fn among_arguments(spec: &ToolSpec, sandbox: Sandbox) -> Option<String> {
    let why = unread(sandbox).filter(|_| spec.side_effects == SideEffects::Write)?;
    let is_read = |argument: &str| {
        spec.requires_fs.iter().any(|one| one.argument == argument && one.mode != FsMode::Write)
    };
    let FsRequirement { argument, .. } = spec.requires_fs.iter().find(|one| !is_read(&one.argument))?;
    Some(refused(sandbox, &format!("the path in its argument '{argument}'"), why))
}

/// The first path that is granted, and cannot be given as it is by now. Where nothing bounds its calls, the whole
/// workspace is given.
fn granted(setup: &Setup, spec: &ToolSpec, sandbox: Sandbox) -> Option<String> {
    let grants = setup.config.policy.capabilities.fs_grants()?;
    let workspace = Workspace::open(&setup.root).ok()?;
    ReachedPath::granted(grants, spec.side_effects).into_iter().find_map(
        |ReachedPath { path, mode, .. }| {
            let why = ungiven(sandbox, mode, &workspace.open(&path).ok()?)?;
            Some(refused(sandbox, &format!("'{}'", path.display()), why))
        },
    )
}

fn refused(sandbox: Sandbox, what: &str, why: &str) -> String {
    format!("sandbox '{}' cannot be given {what}, {why}", sandbox.as_str())
}
