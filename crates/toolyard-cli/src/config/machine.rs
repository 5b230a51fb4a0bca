//! `[sandbox.micro_vm]`: what virtual machines are made of.

use super::section::Section;
use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
};

const MIB: u64 = 1 << 20;

/// What executes a machine's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Accel {
    #[default]
    Tcg,
    Kvm,
}

const ACCELS: &[(&str, Accel)] = &[("tcg", Accel::Tcg), ("kvm", Accel::Kvm)];

/// What the configuration says of machines; what it does not is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MachineSettings {
    pub(crate) kernel: Option<PathBuf>,
    pub(crate) modules: Option<PathBuf>,
    pub(crate) agent: Option<PathBuf>,
    /// Files and directories that every machine has.
    pub(crate) add: Vec<PathBuf>,
    pub(crate) accel: Accel,
    /// The sizes of memory in MiB; that of calls without a limit first. Empty is the default.
    pub(crate) memory: Vec<NonZeroU32>,
    /// The most bytes of files that go into a machine.
    pub(crate) files_max: Option<u64>,
}

/// Reads `[sandbox.micro_vm]`, whose paths are relative to `here`.
pub(super) fn read(mut section: Section<'_>, here: &Path) -> MachineSettings {
    let mut settings = MachineSettings::default();
    for (key, to) in
        [("kernel", &mut settings.kernel), ("modules", &mut settings.modules), ("agent", &mut settings.agent)]
    {
        let Some((path, at)) = section.string(key) else { continue };
        *to = existing(&section, key, here.join(path), &at);
    }
    for (path, at) in section.strings("add").unwrap_or_default() {
        settings.add.extend(existing(&section, "add", here.join(path), &at));
    }
    settings.accel = section.choice("accel", ACCELS).map(|(accel, _)| accel).unwrap_or_default();
    for (text, at) in section.strings("memory").unwrap_or_default() {
        let size = section.parsed("memory", &at, super::size::parse(&text));
        settings.memory.extend(size.and_then(|size| mebibytes(&section, size, &at)));
    }
    settings.files_max = section.size("files_max");
    section.finish();
    settings
}

/// A path that is there; machines take it as it is at their start.
fn existing(section: &Section<'_>, key: &str, path: PathBuf, at: &std::ops::Range<usize>) -> Option<PathBuf> {
    let found = std::path::absolute(&path).ok().filter(|path| path.exists());
    if found.is_none() {
        section.report(at, format!("{}{key}: there is no '{}'", section.prefix(), path.display()));
    }
    found
}

fn mebibytes(section: &Section<'_>, size: u64, at: &std::ops::Range<usize>) -> Option<NonZeroU32> {
    let whole = size.is_multiple_of(MIB).then(|| u32::try_from(size / MIB).ok()).flatten();
    let whole = whole.and_then(NonZeroU32::new);
    if whole.is_none() {
        section.report(at, format!("{}memory: a size is a whole number of MiB", section.prefix()));
    }
    whole
}
