//! `[confirmation]`: which calls need approval.

use super::section::Section;
use std::{
    env, io,
    path::{Path, PathBuf},
};
use toolyard::{ConfirmationMode, Confirmations, SideEffects};

const MODES: &[(&str, ConfirmationMode)] = &[
    ("auto", ConfirmationMode::Auto),
    ("prompt", ConfirmationMode::Prompt),
    ("prompt_once", ConfirmationMode::PromptOnce),
    ("deny", ConfirmationMode::Deny),
];

/// The spellings of side effects.
pub(super) const CLASSES: &[(&str, SideEffects)] = &[
    ("none", SideEffects::None),
    ("read", SideEffects::Read),
    ("write", SideEffects::Write),
    ("execute", SideEffects::Execute),
    ("network", SideEffects::Network),
];

/// The workspaces whose writes need no approval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trusted {
    /// Those that exist, with links resolved.
    pub(crate) roots: Vec<PathBuf>,
    /// Those that do not exist, as written.
    pub(crate) missing: Vec<String>,
}

/// Reads the section of a file in the directory `here`; `known` checks that a tool exists, or returns an error message.
pub(super) fn read(
    mut section: Section<'_>,
    here: &Path,
    known: impl Fn(&str) -> Result<(), String>,
) -> (Confirmations, Trusted) {
    let mut confirmations = Confirmations::default();
    let mut default = section.section("default");
    for (name, side_effects) in CLASSES {
        if let Some((mode, _)) = default.choice(name, MODES) {
            confirmations = confirmations.side_effects(*side_effects, mode);
        }
    }
    default.finish();
    let mut per_tool = section.section("per_tool");
    for (name, at, value) in per_tool.entries() {
        known(&name).unwrap_or_else(|what| section.report(&at, what));
        let mode = value.get_ref().as_str().and_then(|word| MODES.iter().find(|(name, _)| *name == word));
        match mode {
            Some((_, mode)) => confirmations = confirmations.tool(name, *mode),
            None => {
                let what = format!(
                    "[confirmation] per_tool '{name}' must be one of 'auto', 'prompt', 'prompt_once', 'deny'"
                );
                section.report(&value.span(), what);
            }
        }
    }
    if let Some(timeout) = section.duration("timeout") {
        confirmations = confirmations.timeout(timeout);
    }
    let trusted = trusted(&mut section, here);
    let trusts_any = !trusted.roots.is_empty() || !trusted.missing.is_empty();
    let mut overrides = section.section("trusted_workspace_overrides");
    for (name, side_effects) in CLASSES {
        let Some((mode, at)) = overrides.choice(name, MODES) else { continue };
        if !trusts_any {
            let what = "[confirmation] trusted_workspace_overrides has no effect without trusted_workspaces";
            overrides.report(&at, what);
        }
        confirmations = confirmations.trusted_override(*side_effects, mode);
    }
    overrides.finish();
    section.finish();
    (trusted.roots.iter().fold(confirmations, Confirmations::trust), trusted)
}

fn trusted(section: &mut Section<'_>, here: &Path) -> Trusted {
    let mut trusted = Trusted::default();
    for (text, at) in section.strings("trusted_workspaces").unwrap_or_default() {
        if text.is_empty() {
            let what =
                "[confirmation] trusted_workspaces: name a directory; '.' is the directory of this file";
            section.report(&at, what);
            continue;
        }
        match directory(here, &text) {
            Ok(root) => trusted.roots.push(root),
            Err(_) => trusted.missing.push(text),
        }
    }
    trusted
}

/// Resolves all links, as the workspace does for its root: redirecting a link later does not extend the trust.
fn directory(here: &Path, text: &str) -> io::Result<PathBuf> {
    let path = match (Path::new(text).strip_prefix("~"), env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) => return Err(io::ErrorKind::NotFound.into()),
        (Err(_), _) => here.join(text),
    };
    let path = path.canonicalize()?;
    if path.is_dir() { Ok(path) } else { Err(io::ErrorKind::NotADirectory.into()) }
}
