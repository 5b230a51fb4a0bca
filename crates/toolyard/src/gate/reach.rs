//! Which paths and hosts a call names, and whether its agent may use them (PO-1b, PO-2).
//!
//! | the argument | paths | hosts |
//! |---|---|---|
//! | a string | that path | that host |
//! | a list of strings | each of them | each of them |
//! | missing, null, an empty list | the tool chooses: the whole workspace | the tool chooses: every host |
//! | anything else | `invalid_input` | `invalid_input` |

use crate::{registry::ToolEntry, session::SessionCore};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use toolyard_core::{CallError, Capabilities, ErrorKind, FsMode, Host, PathEscape, PathScope};

/// Checks that everything the call names is within its agent's reach.
pub(super) fn check(entry: &ToolEntry, args: &Value, session: &SessionCore) -> Result<(), CallError> {
    paths(entry, args, session)?;
    hosts(entry, args, session)
}

fn paths(entry: &ToolEntry, args: &Value, session: &SessionCore) -> Result<(), CallError> {
    let spec = entry.spec();
    let Some(scope) = session.scope.as_deref() else {
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
        let reach = Reach { entry, session, scope, mode: requirement.mode };
        match named(args, &requirement.argument)? {
            // The tool chooses a path within the workspace.
            NamedValues::Nothing => reach.path(".", "no path")?,
            NamedValues::One(path) => reach.path(path, path)?,
            NamedValues::Each(paths) => paths.iter().try_for_each(|path| reach.path(path, path))?,
        }
    }
    Ok(())
}

fn hosts(entry: &ToolEntry, args: &Value, session: &SessionCore) -> Result<(), CallError> {
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
struct Reach<'a> {
    entry: &'a ToolEntry,
    session: &'a SessionCore,
    scope: &'a dyn PathScope,
    mode: FsMode,
}

impl Reach<'_> {
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
        match catch_unwind(AssertUnwindSafe(ask)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(escape)) => Err(CallError::new(ErrorKind::PermissionDenied, escape.to_string())),
            Err(_) => {
                tracing::error!(
                    tool = self.entry.name(),
                    "the workspace's check panicked; the call is refused"
                );
                let error = CallError::new(ErrorKind::Internal, "the workspace check failed");
                Err(error.not_started())
            }
        }
    }
}
