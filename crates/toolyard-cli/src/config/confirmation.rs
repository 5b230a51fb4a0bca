//! `[confirmation]`: which calls are asked about.

use super::{ConfigError, section::Section};
use toolyard::{ConfirmationMode, Confirmations, SideEffects};

const MODES: &[(&str, ConfirmationMode)] = &[
    ("auto", ConfirmationMode::Auto),
    ("prompt", ConfirmationMode::Prompt),
    ("prompt_once", ConfirmationMode::PromptOnce),
    ("deny", ConfirmationMode::Deny),
];

const CLASSES: &[(&str, SideEffects)] = &[
    ("none", SideEffects::None),
    ("read", SideEffects::Read),
    ("write", SideEffects::Write),
    ("execute", SideEffects::Execute),
    ("network", SideEffects::Network),
];

/// Reads the section; `known` tells whether there is a tool of a name, or what to say where there is none.
pub(super) fn read(
    mut section: Section<'_>,
    known: impl Fn(&str) -> Result<(), String>,
) -> Result<Confirmations, ConfigError> {
    let mut confirmations = Confirmations::default();
    let mut default = section.section("default")?;
    for (name, side_effects) in CLASSES {
        if let Some((mode, _)) = default.choice(name, MODES)? {
            confirmations = confirmations.side_effects(*side_effects, mode);
        }
    }
    default.finish()?;
    let mut per_tool = section.section("per_tool")?;
    for (name, at, value) in per_tool.entries() {
        known(&name).map_err(|what| section.error(&at, what))?;
        let mode = value.get_ref().as_str().and_then(|word| MODES.iter().find(|(name, _)| *name == word));
        let Some((_, mode)) = mode else {
            let what = format!(
                "[confirmation] per_tool '{name}' must be one of 'auto', 'prompt', 'prompt_once', 'deny'"
            );
            return Err(section.error(&value.span(), what));
        };
        confirmations = confirmations.tool(name, *mode);
    }
    if let Some(timeout) = section.duration("timeout")? {
        confirmations = confirmations.timeout(timeout);
    }
    section.finish()?;
    Ok(confirmations)
}
