//! `[shell]`: how commands of the tool `shell` run.

use super::{ConfigError, section::Section};
use std::{ops::RangeInclusive, time::Duration};

/// The name of the tool.
pub(crate) const SHELL: &str = "shell";

/// Whether there is one on this system.
pub(crate) const HAS_SHELL: bool = cfg!(unix);

/// How many bytes of an output may be kept: less says nothing, more is no reading for a model.
const OUTPUT_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// How commands run, as far as it is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShellSettings {
    /// The names of the variables that commands get.
    pub(crate) environment: Option<Vec<String>>,
    /// How long a command may take.
    pub(crate) timeout: Option<Duration>,
    /// How many bytes of its output are kept.
    pub(crate) output_bytes: Option<usize>,
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> Result<ShellSettings, ConfigError> {
    let environment = environment(&mut section)?;
    let timeout = section.duration("timeout")?;
    let bytes = section.whole("output_bytes", *OUTPUT_BYTES.start(), *OUTPUT_BYTES.end())?;
    section.finish()?;
    let output_bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    Ok(ShellSettings { environment, timeout, output_bytes })
}

fn environment(section: &mut Section<'_>) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(names) = section.texts("env")? else { return Ok(None) };
    let name = |(name, at): (String, _)| match name.is_empty() || name.contains(['=', '\0', ' ']) {
        true => {
            let what =
                format!("[shell] env names variables, such as \"PATH\"; no variable is called '{name}'");
            Err(section.error(&at, what.replace(['\0', '\n'], " ")))
        }
        false => Ok(name),
    };
    names.into_iter().map(name).collect::<Result<_, _>>().map(Some)
}
