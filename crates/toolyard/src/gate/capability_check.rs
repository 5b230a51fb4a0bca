//! Which paths and hosts a call names, and whether its agent may use them (PO-1b, PO-2).
//!
//! | the argument | paths | hosts |
//! |---|---|---|
//! | a string | that path | that host |
//! | a list of strings | each of them | each of them |
//! | missing, null, an empty list | the tool chooses: the whole workspace | the tool chooses: every host |
//! | anything else | `invalid_input` | `invalid_input` |

use crate::{agent::Agent, tasks::caught, tool::ToolEntry};
use serde_json::Value;
use std::path::{Path, PathBuf};
use toolyard_core::{
    CallError, Capabilities, ErrorKind, FsGrant, FsMode, Host, LinkedPath, PathEscape, PathScope,
    SideEffects, resolve_by_name,
};

/// Checks that everything the call names is granted to its agent.
pub(super) fn check(entry: &ToolEntry, args: &Value, session: &Agent) -> Result<(), CallError> {
    paths(entry, args, session)?;
    hosts(entry, args, session)
}

fn paths(entry: &ToolEntry, args: &Value, session: &Agent) -> Result<(), CallError> {
    let spec = entry.spec();
    let Some(scope) = session.scope.as_ref().map(|scope| &***scope) else {
        if spec.requires_workspace {
            let message = format!("Tool '{}' needs a workspace and this session has none", entry.name());
            return Err(CallError::new(ErrorKind::PermissionDenied, message));
        }
        return match spec.requires_fs.is_empty()
            || !session.permissions.capabilities().any(Capabilities::bounds_fs)
        {
            true => Ok(()),
            false => Err(CallError::new(
                ErrorKind::FsDenied,
                "This agent may only use paths in a workspace, and this session has none",
            )),
        };
    };
    for requirement in &spec.requires_fs {
        let of = PathCheck { entry, session, scope, mode: requirement.mode };
        match named(args, &requirement.argument)? {
            // The tool chooses a path within the workspace.
            NamedValues::Nothing => of.path(".", "no path")?,
            NamedValues::One(path) => of.path(path, path)?,
            NamedValues::Each(paths) => paths.iter().try_for_each(|path| of.path(path, path))?,
        }
    }
    Ok(())
}

/// A path that a call names, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    path: String,
    leads_to: PathBuf,
    is_link: bool,
}

impl NamedPath {
    /// The path as a link, if it leads elsewhere than its name says.
    pub(crate) fn link(&self) -> Option<LinkedPath> {
        let Self { path, leads_to, is_link } = self;
        is_link.then(|| LinkedPath { path: path.clone(), leads_to: leads_to.clone() })
    }
}

/// The paths that a call names, and where each leads now.
///
/// # Errors
/// `permission_denied` for one that leads out of the workspace.
pub(crate) fn named_paths(
    entry: &ToolEntry,
    args: &Value,
    session: &Agent,
) -> Result<Vec<NamedPath>, CallError> {
    let Some(scope) = session.scope.as_ref().map(|scope| &***scope) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for requirement in &entry.spec().requires_fs {
        let of = PathCheck { entry, session, scope, mode: requirement.mode };
        let mut name = |path: &str| -> Result<(), CallError> {
            let leads_to = of.call_workspace(|| scope.resolve(path))?;
            let by_name = of.call_workspace(|| Ok(resolve_by_name(scope.root(), path)))?;
            // The name of a root may itself be a link; then only the end of the path says where it should lead.
            let is_link =
                by_name.map_or_else(|_| !Path::new(path).ends_with(&leads_to), |named| named != leads_to);
            paths.push(NamedPath { path: path.to_owned(), leads_to, is_link });
            Ok(())
        };
        match named(args, &requirement.argument)? {
            NamedValues::Nothing => {}
            NamedValues::One(path) => name(path)?,
            NamedValues::Each(paths) => paths.iter().try_for_each(|path| name(path))?,
        }
    }
    Ok(paths)
}

/// The files that a call touches, if its arguments say so: its tool declares paths among them and no host, runs no
/// foreign code, and does not talk to other machines. `None` if that is not known (SM-2).
///
/// # Errors
/// `permission_denied` for a path that leads out of the workspace.
pub(crate) fn declared_paths(
    entry: &ToolEntry,
    args: &Value,
    scope: &dyn PathScope,
) -> Result<Option<Vec<FsGrant>>, CallError> {
    let spec = entry.spec();
    let says_all = matches!(spec.side_effects, SideEffects::None | SideEffects::Read | SideEffects::Write);
    if spec.requires_fs.is_empty() || !spec.requires_net.is_empty() || !says_all {
        return Ok(None);
    }
    let mut declared = Vec::new();
    for requirement in &spec.requires_fs {
        let mut leads_to = |path: &str| {
            let denied = |why: String| CallError::new(ErrorKind::PermissionDenied, why);
            let path = scope.resolve(path).map_err(|escape| denied(escape.to_string()))?;
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            declared.push(FsGrant::new(requirement.mode, path).map_err(|error| denied(error.to_string()))?);
            Ok(())
        };
        match named(args, &requirement.argument)? {
            NamedValues::Nothing => leads_to(".")?,
            NamedValues::One(path) => leads_to(path)?,
            NamedValues::Each(paths) => paths.into_iter().try_for_each(leads_to)?,
        }
    }
    Ok(Some(declared))
}

/// Checks that the paths of an approved call still lead where they led when it was asked about.
pub(crate) fn lead_as_before(
    before: &[NamedPath],
    entry: &ToolEntry,
    args: &Value,
    session: &Agent,
) -> Result<(), CallError> {
    let now = named_paths(entry, args, session)?;
    let Some((was, is)) = before.iter().zip(&now).find(|(was, is)| was != is) else { return Ok(()) };
    let message = format!(
        "Path '{}' led to '{}' when this call was approved and now leads to '{}'",
        was.path,
        was.leads_to.display(),
        is.leads_to.display()
    );
    Err(CallError::new(ErrorKind::PermissionDenied, message)
        .with_advice("Nothing was done. If the call is still needed, send it again to be asked about anew."))
}

fn hosts(entry: &ToolEntry, args: &Value, session: &Agent) -> Result<(), CallError> {
    let bounded = || session.permissions.capabilities().filter(|capabilities| capabilities.bounds_net());
    for argument in &entry.spec().requires_net {
        let named = named(args, argument)?;
        if bounded().next().is_none() {
            continue;
        }
        let one = |text: &str| -> Result<(), CallError> {
            let host = Host::parse(text).map_err(|error| net_denied(error.to_string()))?;
            match bounded().all(|capabilities| capabilities.host(&host)) {
                true => Ok(()),
                false => Err(net_denied(format!("Host '{host}' is not granted to this agent"))),
            }
        };
        match named {
            NamedValues::Nothing if bounded().all(|capabilities| capabilities.any_host()) => {}
            NamedValues::Nothing => {
                return Err(net_denied(format!(
                    "Argument '{argument}' must name a host that is granted to this agent"
                )));
            }
            NamedValues::One(text) => one(text)?,
            NamedValues::Each(texts) => texts.iter().try_for_each(|text| one(text))?,
        }
    }
    Ok(())
}

/// The paths and hosts that a call names, as they stand in its arguments, for those who read about it.
pub(crate) fn projected(entry: &ToolEntry, args: &Value) -> Vec<String> {
    let spec = entry.spec();
    let arguments = spec.requires_fs.iter().map(|requirement| requirement.argument.as_str());
    let arguments = arguments.chain(spec.requires_net.iter().map(String::as_str));
    let mut names = Vec::new();
    for argument in arguments {
        match named(args, argument) {
            Ok(NamedValues::One(text)) => names.push(text.to_owned()),
            Ok(NamedValues::Each(texts)) => names.extend(texts.into_iter().map(str::to_owned)),
            // What is not named, the tool chooses.
            Ok(NamedValues::Nothing) | Err(_) => {}
        }
    }
    names
}

fn net_denied(message: String) -> CallError {
    CallError::new(ErrorKind::NetDenied, message)
}

/// The paths or hosts that an argument names.
enum NamedValues<'a> {
    Nothing,
    One(&'a str),
    Each(Vec<&'a str>),
}

fn named<'a>(args: &'a Value, argument: &str) -> Result<NamedValues<'a>, CallError> {
    let misfit = || {
        let message = format!("Argument '{argument}' must be a string or a list of strings");
        CallError::new(ErrorKind::InvalidInput, message)
    };
    match args.get(argument) {
        None | Some(Value::Null) => Ok(NamedValues::Nothing),
        // Many tools treat an empty list like a missing argument.
        Some(Value::Array(items)) if items.is_empty() => Ok(NamedValues::Nothing),
        Some(Value::String(text)) => Ok(NamedValues::One(text)),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().ok_or_else(misfit));
            texts.collect::<Result<_, _>>().map(NamedValues::Each)
        }
        Some(_) => Err(misfit()),
    }
}

/// Checks the paths of a call.
struct PathCheck<'a> {
    entry: &'a ToolEntry,
    session: &'a Agent,
    scope: &'a dyn PathScope,
    mode: FsMode,
}

impl PathCheck<'_> {
    /// Checks one path; `shown` is how the message names it.
    fn path(&self, path: &str, shown: &str) -> Result<(), CallError> {
        self.call_workspace(|| self.scope.check(path))?;
        let mut bounded = self
            .session
            .permissions
            .capabilities()
            .filter(|capabilities| capabilities.bounds_fs())
            .peekable();
        if bounded.peek().is_none() {
            return Ok(());
        }
        let resolved = self.call_workspace(|| self.scope.resolve(path))?;
        if bounded.all(|capabilities| capabilities.path(self.mode, &resolved)) {
            return Ok(());
        }
        let verb = match self.mode {
            FsMode::Read => "read",
            FsMode::Write => "write",
            FsMode::ReadWrite => "read and write",
        };
        let message = match shown == path {
            true => format!("This agent may not {verb} '{path}'"),
            false => format!("This agent may not {verb} the whole workspace, and the call names {shown}"),
        };
        Err(CallError::new(ErrorKind::FsDenied, message))
    }

    /// Calls the workspace, which is the embedder's code and may panic.
    fn call_workspace<T>(&self, ask: impl FnOnce() -> Result<T, PathEscape>) -> Result<T, CallError> {
        match caught(ask) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(escape)) => Err(CallError::new(ErrorKind::PermissionDenied, escape.to_string())),
            Err(panic) => {
                let redactor = self.session.engine.redactor.as_ref();
                let what = "the workspace's check panicked; the call is refused";
                panic.log(what, Some(self.entry.name()), redactor);
                let error = CallError::new(ErrorKind::Internal, "the workspace check failed");
                Err(error.not_started())
            }
        }
    }
}
