//! `[program.NAME]`: tools that are programs of any language (SB-1).

mod command;
mod module;
mod schema;
mod service;

pub(super) use schema::take as take_schema;

use super::{
    section::{Placed, Section},
    tool::SIDE_EFFECTS,
};
use std::{
    ops::Range,
    path::{Path, PathBuf},
};
use toolyard::{FsMode, OutputKind, PROGRAM_OUTPUT_BYTES, Program, Redactor, SideEffects, ToolSpec};

/// The valid sizes for kept output: less is useless, and more is too long for a model to read.
const OUTPUT_BYTES: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 20;

const OUTPUTS: &[(&str, OutputKind)] =
    &[(OutputKind::Text.as_str(), OutputKind::Text), (OutputKind::Json.as_str(), OutputKind::Json)];

/// How a program may use a path that is one of its arguments.
const MODES: &[(&str, FsMode)] = &[("r", FsMode::Read), ("w", FsMode::Write), ("rw", FsMode::ReadWrite)];

/// A tool that is a program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramTool {
    /// What the configuration declares of it; its version follows from the rest.
    pub(crate) spec: ToolSpec,
    /// What runs its calls.
    pub(crate) program: Program,
    /// The files of the configuration that the program is made of.
    pub(crate) files: Vec<PathBuf>,
    /// Whether tools may write those files all the same.
    pub(crate) is_writable: bool,
    /// Values of its variables that are secrets.
    pub(crate) secrets: Vec<String>,
}

impl ProgramTool {
    /// The files that say what the tool does, unless tools may write them.
    pub(crate) fn governing(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|_| !self.is_writable).map(PathBuf::as_path)
    }
}

/// What the ways to say what a program is give in common.
struct Made {
    program: Program,
    files: Vec<PathBuf>,
    secrets: Vec<String>,
}

/// Reads the section; paths are relative to `here`. Also returns the names of the tools that have errors, because other
/// sections may name them.
pub(super) fn read(mut section: Section<'_>, here: &Path, taken: &[&str]) -> (Vec<ProgramTool>, Vec<String>) {
    let (mut tools, mut broken) = (Vec::new(), Vec::new());
    for (name, at, inner) in section.sections() {
        check_name(&section, &name, &at, taken);
        match tool(&name, &at, inner, here) {
            Some(tool) => tools.push(tool),
            None => broken.push(name),
        }
    }
    section.finish();
    (tools, broken)
}

/// Registers the secrets of the programs with the redactor. Secrets too short to be told from other text are skipped.
pub(super) fn redact_secrets(tools: &[ProgramTool], redactor: Redactor) -> Redactor {
    let secrets = tools.iter().flat_map(|tool| tool.secrets.iter());
    secrets.fold(redactor, |redactor, secret| redactor.clone().with_secret(secret).unwrap_or(redactor))
}

pub(super) fn check_name(section: &Section<'_>, name: &str, at: &Range<usize>, taken: &[&str]) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_plain) {
        let what = format!("'{name}' is not a name for a tool: use letters, digits, '-', '_' and '.'");
        section.report(at, what);
    }
    if taken.contains(&name) {
        let what = format!(
            "a built-in tool is called '{name}': choose another name, or leave it out of [builtin] enable"
        );
        section.report(at, what);
    }
}

fn tool(name: &str, at: &Range<usize>, mut section: Section<'_>, here: &Path) -> Option<ProgramTool> {
    let effects = section.choice("side_effects", SIDE_EFFECTS).map(|(effects, _)| effects);
    // Until its author says more, a program may do anything.
    let mut spec = ToolSpec::new(name, effects.unwrap_or(SideEffects::Execute));
    match section.string("description") {
        Some((text, at)) if text.trim().is_empty() => section.report(&at, missing_description(name)),
        Some((text, _)) => spec = spec.describe(text),
        None if section.is_mistyped("description") => {}
        None => section.report(at, missing_description(name)),
    }
    if let Some(schema) = schema::take(&mut section, here) {
        spec = spec.foreign_schema(schema);
    }
    for (argument, mode) in paths(section.section("paths")) {
        spec = spec.requires_fs(mode, argument);
    }
    for (argument, _) in section.strings("hosts").unwrap_or_default() {
        spec = spec.requires_net(argument);
    }
    let output = section.choice("output", OUTPUTS).map(|(kind, _)| kind).unwrap_or_default();
    let bytes = output_bytes(&mut section);
    let is_writable = section.boolean("writable").unwrap_or_default();
    let made = match (section.string("url"), section.string("wasm")) {
        (Some(url), None) => service::take(url, &mut section, output, bytes),
        (None, Some(file)) => module::take(&file, &mut section, here, output, bytes),
        (Some(_), Some((_, at))) => {
            section.report(&at, format!("{}is a url or a wasm module, not both", section.prefix()));
            None
        }
        (None, None) => command::take(at, &mut section, here, output, bytes),
    };
    section.finish();
    made.map(|Made { program, files, secrets }| ProgramTool { spec, program, files, is_writable, secrets })
}

fn missing_description(name: &str) -> String {
    format!("[program.\"{name}\"] needs a description: the model chooses its tools by it")
}

fn output_bytes(section: &mut Section<'_>) -> usize {
    let Some((bytes, at)) = section.placed_size("output_bytes") else { return PROGRAM_OUTPUT_BYTES };
    if !OUTPUT_BYTES.contains(&bytes) {
        let what = format!("{}output_bytes must be from 1KiB to 1MiB", section.prefix());
        section.report(&at, what);
    }
    usize::try_from(bytes).unwrap_or(PROGRAM_OUTPUT_BYTES)
}

/// Reads which of its arguments are paths, and how it uses them.
fn paths(mut section: Section<'_>) -> Vec<(String, FsMode)> {
    let mut paths = Vec::new();
    for (argument, _, value) in section.entries() {
        let at = value.span();
        let mode = value.get_ref().as_str().and_then(|word| MODES.iter().find(|(name, _)| *name == word));
        match mode {
            Some((_, mode)) => paths.push((argument, *mode)),
            None => {
                let what = format!(
                    "{}{argument} must be how the path is used: \"r\", \"w\" or \"rw\"",
                    section.prefix()
                );
                section.report(&at, what);
            }
        }
    }
    section.finish();
    paths
}

/// A path of the configuration: what it is relative to is the file that names it.
fn in_configuration(here: &Path, (path, _): &Placed<String>) -> PathBuf {
    let path = here.join(path);
    std::path::absolute(&path).unwrap_or(path)
}
