//! `[policy]`: which tools may run, in which sandbox, and what they may touch.

use super::{
    confirmation::CLASSES,
    section::{Placed, Section, TableOrWord, Value},
};
use toolyard::{Capabilities, FsGrant, FsMode, Grant, HostPattern, PolicyRules, Rule, Sandbox};

const SANDBOXES: &[(&str, Sandbox)] = &[
    (Sandbox::Host.as_str(), Sandbox::Host),
    (Sandbox::Process.as_str(), Sandbox::Process),
    (Sandbox::Landlock.as_str(), Sandbox::Landlock),
    (Sandbox::Wasm.as_str(), Sandbox::Wasm),
    (Sandbox::MicroVm.as_str(), Sandbox::MicroVm),
    (Sandbox::Remote.as_str(), Sandbox::Remote),
];

const MODES: &[(&str, FsMode)] = &[
    ("r", FsMode::Read),
    ("read", FsMode::Read),
    ("w", FsMode::Write),
    ("write", FsMode::Write),
    ("rw", FsMode::ReadWrite),
];

const RULE_WANTED: &str =
    "\"allow\", \"deny\", or a table of limits such as { sandbox = \"host\", wall_time = \"30s\" }";

/// Which tools may run, and what they may touch.
#[derive(Debug, Clone)]
pub(crate) struct PolicySettings {
    /// Which tools may run, and in which sandbox.
    pub(crate) rules: PolicyRules,
    /// The same without the place of the shell's commands, which is configured elsewhere.
    pub(crate) as_written: PolicyRules,
    /// The rules' names that end in a star.
    pub(crate) patterns: Vec<String>,
    /// What the tools may touch.
    pub(crate) capabilities: Capabilities,
    /// The capabilities as written.
    pub(crate) capability_texts: CapabilityTexts,
}

/// The capabilities as written; `None` means unbounded.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapabilityTexts {
    /// The tools that may be called.
    pub(crate) tools: Option<Vec<String>>,
    /// Paths, each with its mode.
    pub(crate) fs: Option<Vec<String>>,
    /// Hosts.
    pub(crate) net: Option<Vec<String>>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            rules: PolicyRules::new(Rule::allow()),
            as_written: PolicyRules::new(Rule::allow()),
            patterns: Vec::new(),
            capabilities: Capabilities::default(),
            capability_texts: CapabilityTexts::default(),
        }
    }
}

/// Reads the section; `known` checks that a tool exists, or returns an error message.
pub(super) fn read(mut section: Section<'_>, known: impl Fn(&str) -> Result<(), String>) -> PolicySettings {
    let mut policy = PolicySettings::default();
    if let Some(rule) = section.take("default").and_then(|value| rule(&section, "default", value)) {
        policy.rules = PolicyRules::new(rule);
    }
    let mut by_side_effects = section.section("side_effects");
    for (name, side_effects) in CLASSES {
        let value = by_side_effects.take(name);
        if let Some(rule) = value.and_then(|value| rule(&by_side_effects, name, value)) {
            policy.rules = policy.rules.side_effects(*side_effects, rule);
        }
    }
    by_side_effects.finish();
    let mut rules = section.section("rules");
    for (name, at, value) in rules.entries() {
        match is_pattern(&name) {
            Ok(true) => policy.patterns.push(name.clone()),
            Ok(false) => known(&name).unwrap_or_else(|what| rules.report(&at, what)),
            Err(what) => rules.report(&at, what),
        }
        if let Some(rule) = rule(&rules, &format!("'{name}'"), value) {
            policy.rules = policy.rules.tool(name, rule);
        }
    }
    (policy.capabilities, policy.capability_texts) = capabilities(section.section("capabilities"), known);
    section.finish();
    policy.as_written = policy.rules.clone();
    policy
}

/// Whether a rule's name is a pattern: a prefix followed by a star.
fn is_pattern(name: &str) -> Result<bool, String> {
    match name.find('*') {
        None => Ok(false),
        Some(place) if place + 1 == name.len() => Ok(true),
        Some(_) => Err(format!("'{name}': a star must be at the end of a name, as in 'git__*'")),
    }
}

fn rule<'a>(section: &Section<'a>, key: &str, value: Value<'a>) -> Option<Rule> {
    match section.table_or_word(key, value, RULE_WANTED)? {
        TableOrWord::Table(table) => Some(Rule::Allow(grant(table))),
        TableOrWord::Word((word, at)) => match word.as_str() {
            "allow" => Some(Rule::allow()),
            "deny" => Some(Rule::Deny),
            _ => {
                section.report(&at, format!("{}{key} must be {RULE_WANTED}, not '{word}'", section.prefix()));
                None
            }
        },
    }
}

fn grant(mut table: Section<'_>) -> Grant {
    let mut grant = Grant::own_form();
    grant.sandbox = table.choice("sandbox", SANDBOXES).map(|(sandbox, _)| sandbox);
    let limits = &mut grant.limits;
    limits.wall_time = table.duration("wall_time");
    limits.memory = table.size("memory");
    limits.memory_per_process = table.size("memory_per_process");
    limits.cpu_time = table.duration("cpu_time");
    limits.cpu_time_per_process = table.duration("cpu_time_per_process");
    limits.processes = table.small_count("processes").map(Into::into);
    limits.open_files = table.small_count("open_files").map(Into::into);
    // A limit above `usize::MAX` cannot be reached.
    limits.output_bytes = table.size("output").map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    table.finish();
    grant
}

/// Reads what may be touched; `known` checks that a tool exists.
pub(super) fn capabilities(
    mut section: Section<'_>,
    known: impl Fn(&str) -> Result<(), String>,
) -> (Capabilities, CapabilityTexts) {
    let (mut capabilities, mut texts) = (Capabilities::default(), CapabilityTexts::default());
    if let Some(names) = section.strings("tools") {
        for (name, at) in &names {
            known(name).unwrap_or_else(|what| section.report(at, what));
        }
        let names = without_places(names);
        capabilities = capabilities.tools(names.iter().map(String::as_str));
        texts.tools = Some(names);
    }
    if let Some(grants) = section.strings("fs") {
        capabilities = capabilities.fs(each(&section, "fs", &grants, fs_grant));
        texts.fs = Some(without_places(grants));
    }
    if let Some(patterns) = section.strings("net") {
        let pattern = |text: &str| text.parse::<HostPattern>().map_err(|error| error.to_string());
        capabilities = capabilities.net(each(&section, "net", &patterns, pattern));
        texts.net = Some(without_places(patterns));
    }
    section.finish();
    (capabilities, texts)
}

/// Parses each of the texts; those that are not valid are reported.
fn each<T>(
    section: &Section<'_>,
    key: &str,
    texts: &[Placed<String>],
    read: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    texts.iter().filter_map(|(text, at)| section.parsed(key, at, read(text))).collect()
}

fn without_places(placed: Vec<Placed<String>>) -> Vec<String> {
    placed.into_iter().map(|(text, _)| text).collect()
}

fn fs_grant(text: &str) -> Result<FsGrant, String> {
    let form =
        || format!("'{text}' is not a grant: write a mode and a path, such as \"r:docs\" or \"rw:out\"");
    let (mode, path) = text.split_once(':').ok_or_else(form)?;
    let mode = MODES.iter().find(|(name, _)| *name == mode);
    let (_, mode) = mode.ok_or_else(|| format!("{}; the modes are r, w and rw", form()))?;
    FsGrant::new(*mode, path).map_err(|error| error.to_string())
}
