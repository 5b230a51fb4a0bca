//! `[shell]`: how the tool `shell` runs commands.

use super::section::Section;
use std::{ops::RangeInclusive, time::Duration};
use toolyard::{Grant, PolicyRules, Rule, Sandbox, SideEffects};

/// The name of the tool.
pub(crate) const SHELL: &str = "shell";

/// Whether this system supports the tool.
pub(crate) const HAS_SHELL: bool = cfg!(unix);

/// The valid sizes for kept output: less is useless, and more is too long for a model to read.
const OUTPUT_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// Where commands may run.
const SANDBOXES: &[(&str, Sandbox)] =
    &[("host", Sandbox::Host), ("process", Sandbox::Process), ("micro_vm", Sandbox::MicroVm)];

/// How commands run; settings that are left out have the tool's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShellSettings {
    /// The names of the variables that commands inherit.
    pub(crate) environment: Option<Vec<String>>,
    /// The timeout of a command.
    pub(crate) timeout: Option<Duration>,
    /// The number of bytes of output that are kept.
    pub(crate) output_bytes: Option<usize>,
    /// Where commands run unless a rule says otherwise.
    pub(crate) sandbox: Sandbox,
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> ShellSettings {
    let environment = environment(&mut section);
    let timeout = section.duration("timeout");
    let bytes = section.integer("output_bytes", *OUTPUT_BYTES.start(), *OUTPUT_BYTES.end());
    let sandbox = section.choice("sandbox", SANDBOXES).map_or(Sandbox::Host, |(sandbox, _)| sandbox);
    section.finish();
    let output_bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    ShellSettings { environment, timeout, output_bytes, sandbox }
}

/// The rules, with the place of commands where they name none: a virtual machine is no place that a tool has of its own.
pub(super) fn placed(rules: PolicyRules, settings: &ShellSettings, side_effects: SideEffects) -> PolicyRules {
    match (rules.rule(SHELL, side_effects), settings.sandbox) {
        (Rule::Allow(grant @ Grant { sandbox: None, .. }), Sandbox::MicroVm) => {
            rules.tool(SHELL, Rule::Allow(Grant { sandbox: Some(Sandbox::MicroVm), ..grant }))
        }
        _ => rules,
    }
}

fn environment(section: &mut Section<'_>) -> Option<Vec<String>> {
    let names = section.strings("env")?;
    for (name, at) in &names {
        if name.is_empty() || name.contains(['=', '\0', ' ']) {
            let what = format!("[shell] env: '{name}' cannot be the name of a variable, such as \"PATH\"");
            section.report(at, what.replace(['\0', '\n'], " "));
        }
    }
    Some(names.into_iter().map(|(name, _)| name).collect())
}
