//! `[shell]`: how the tool `shell` runs commands.

use super::section::Section;
use std::{ops::RangeInclusive, time::Duration};

/// The name of the tool.
pub(crate) const SHELL: &str = "shell";

/// Whether this system supports the tool.
pub(crate) const HAS_SHELL: bool = cfg!(unix);

/// The valid sizes for kept output: less is useless, and more is too long for a model to read.
const OUTPUT_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// Where commands may run.
const SANDBOXES: &[(&str, bool)] = &[("host", false), ("process", true)];

/// How commands run; settings that are left out have the tool's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShellSettings {
    /// The names of the variables that commands inherit.
    pub(crate) environment: Option<Vec<String>>,
    /// The timeout of a command.
    pub(crate) timeout: Option<Duration>,
    /// The number of bytes of output that are kept.
    pub(crate) output_bytes: Option<usize>,
    /// Whether commands run in the process sandbox unless a rule says otherwise.
    pub(crate) is_confined: bool,
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> ShellSettings {
    let environment = environment(&mut section);
    let timeout = section.duration("timeout");
    let bytes = section.integer("output_bytes", *OUTPUT_BYTES.start(), *OUTPUT_BYTES.end());
    let is_confined = section.choice("sandbox", SANDBOXES).is_some_and(|(is_confined, _)| is_confined);
    section.finish();
    let output_bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    ShellSettings { environment, timeout, output_bytes, is_confined }
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
