//! What calls of each tool may do, and whether approval is needed: the effective settings, from whatever source.

use super::ungiven;
use crate::{
    config::{CapabilityTexts, SUB_AGENTS, Trusted},
    sandboxes,
    setup::Setup,
    table::Table,
};
use std::{fmt::Display, sync::Arc};
use toolyard::{
    Confinement, Engine, Form, Grant, HiddenFrom, ResourceLimits, Rule, Sandbox, ToolEntry, ToolSpec,
    wording::Span,
};

/// Shown for a setting that is not set.
const NOTHING: &str = "-";

/// The table, with one line per tool.
pub(super) fn table(setup: &Setup, engine: &Engine) -> Table {
    let mut table =
        Table::new(["tool", "policy", "sandbox", "limits", "approval", "may call", "hidden from"]);
    for entry in engine.registry().list() {
        let spec = entry.spec();
        let [policy, sandbox, limits] = match rule(setup, spec) {
            Rule::Deny => ["deny", NOTHING, NOTHING].map(str::to_owned),
            Rule::Allow(grant) => ["allow".to_owned(), sandbox(&grant, entry.forms()), limits(&grant.limits)],
        };
        let may_call = may_call(&setup.config.policy.capability_texts, spec);
        let (approval, hidden) = (approval(setup, spec), hidden_from(spec.settings.hidden_from.as_ref()));
        table.row([spec.name.clone(), policy, sandbox, limits, approval, may_call.to_owned(), hidden]);
    }
    table
}

fn rule(setup: &Setup, spec: &ToolSpec) -> Rule {
    setup.config.policy.rules.rule(&spec.name, spec.side_effects)
}

/// The tools whose programs may run without any confinement.
pub(crate) fn unconfined(setup: &Setup, engine: &Engine) -> Vec<String> {
    let is_unconfined = |entry: &Arc<ToolEntry>| match rule(setup, entry.spec()) {
        Rule::Allow(grant) => runs_unconfined(&grant, entry.forms()),
        Rule::Deny => false,
    };
    engine
        .registry()
        .list()
        .iter()
        .filter(|entry| is_unconfined(entry))
        .map(|entry| entry.name().to_owned())
        .collect()
}

fn runs_unconfined(grant: &Grant, forms: &[Form]) -> bool {
    let sandbox = grant.to_forms(forms).map_or_else(|error| error.sandbox, |confinement| confinement.sandbox);
    forms.iter().any(|form| form.is_unconfined_in(sandbox))
}

/// Where the tool's calls are to execute, and whether a program runs there without any confinement (SM-1). That a tool
/// cannot run there is a warning.
fn sandbox(grant: &Grant, forms: &[Form]) -> String {
    let sandbox = grant.to_forms(forms).map_or_else(|error| error.sandbox, |confinement| confinement.sandbox);
    format!("{}{}", sandbox.as_str(), if runs_unconfined(grant, forms) { ", unconfined" } else { "" })
}

/// Whether calls of a tool run in this sandbox.
pub(super) fn uses(setup: &Setup, engine: &Engine, sandbox: Sandbox) -> bool {
    let entries = engine.registry().list();
    entries.iter().any(|entry| match rule(setup, entry.spec()) {
        Rule::Allow(grant) => grant.to_forms(entry.forms()).is_ok_and(|it| it.sandbox == sandbox),
        Rule::Deny => false,
    })
}

/// Limits, in the words of all tables.
pub(crate) fn limits(limits: &ResourceLimits) -> String {
    let parts = [
        limits.wall_time.map(|time| Span(time).to_string()),
        limits.memory.map(|bytes| format!("{} memory", size(bytes))),
        limits.memory_per_process.map(|bytes| format!("{} memory per process", size(bytes))),
        limits.cpu_time.map(|time| format!("{} CPU", Span(time))),
        limits.cpu_time_per_process.map(|time| format!("{} CPU per process", Span(time))),
        limits.processes.map(|most| format!("{most} processes")),
        limits.open_files.map(|most| format!("{most} open files")),
        limits.output_bytes.map(|bytes| format!("{} output", size(bytes as u64))),
    ];
    listed(parts.into_iter().flatten())
}

/// Formats a size in the largest unit of which it is a whole multiple.
pub(super) fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.iter().find(|(unit, _)| bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// The confirmation mode of a tool's calls, and whether a trusted workspace is the reason for it.
fn approval(setup: &Setup, spec: &ToolSpec) -> String {
    let (mode, elsewhere) =
        (setup.confirmation(spec), setup.config.confirmations.mode(&spec.name, spec.asked_as()));
    let because = if mode == elsewhere { "" } else { ", trusted" };
    format!("{}{because}", mode.as_str())
}

/// Whether the agent's capabilities allow it to call the tool.
fn may_call(texts: &CapabilityTexts, spec: &ToolSpec) -> &'static str {
    match &texts.tools {
        None => NOTHING,
        Some(_) if !spec.needs_capability() => "always",
        Some(names) if names.contains(&spec.name) => "yes",
        Some(_) => "no",
    }
}

fn hidden_from(hidden: Option<&HiddenFrom>) -> String {
    let Some(hidden) = hidden else { return NOTHING.to_owned() };
    let sub_agents = hidden.sub_agents.then(|| SUB_AGENTS.to_owned());
    listed(sub_agents.into_iter().chain(hidden.roles.iter().map(|role| role.to_string())))
}

fn listed<T: Display>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if items.is_empty() { NOTHING.to_owned() } else { items.join(", ") }
}

/// The capabilities, in one line.
pub(super) fn capabilities(texts: &CapabilityTexts) -> String {
    let bounded = [("tools", &texts.tools), ("fs", &texts.fs), ("net", &texts.net)];
    let parts = bounded.into_iter().filter_map(|(name, items)| {
        let items = items.as_ref()?;
        Some(if items.is_empty() { format!("{name} none") } else { format!("{name} {}", items.join(", ")) })
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "unlimited".to_owned() } else { parts.join("; ") }
}

/// The trusted workspaces, in one line, and whether this workspace is one of them.
pub(super) fn trusted(setup: &Setup) -> String {
    let roots = listed(setup.config.trusted.roots.iter().map(|root| root.display()));
    match setup.is_trusted() {
        true => format!("{roots}; this workspace is trusted"),
        false => roots,
    }
}

/// Warnings about calls that are allowed but cannot run, and about settings without effect.
pub(super) fn warnings(setup: &Setup, engine: &Engine) -> Vec<String> {
    let entries = engine.registry().list();
    let of_tools = entries.iter().filter_map(|entry| {
        let Rule::Allow(grant) = rule(setup, entry.spec()) else { return None };
        let of_paths = || {
            let confinement = grant.to_forms(entry.forms()).ok()?;
            ungiven::found(setup, entry.spec(), confinement.sandbox)
        };
        let why = unenforced(setup, &grant, entry.forms()).or_else(of_paths)?;
        Some(format!("warning: tool '{}': {why}: its calls will fail with sandbox_error", entry.name()))
    });
    let Trusted { missing, .. } = &setup.config.trusted;
    let of_workspaces = missing.iter().map(|root| {
        format!(
            "warning: [confirmation] trusted_workspaces: '{root}' is not a directory, so it has no effect"
        )
    });
    let is_idle = |pattern: &&String| {
        let prefix = pattern.trim_end_matches('*');
        !entries.iter().any(|entry| entry.name().starts_with(prefix))
    };
    let of_rules = setup.config.policy.patterns.iter().filter(is_idle);
    let of_rules =
        of_rules.map(|pattern| format!("note: [policy] rules '{pattern}': no tool has such a name"));
    of_tools.chain(of_workspaces).chain(of_rules).collect()
}

/// The part of a grant that cannot be enforced: the tool cannot run there, the sandbox does not exist here, or cannot keep
/// a limit. Everywhere wall time and output are limited.
fn unenforced(setup: &Setup, grant: &Grant, forms: &[Form]) -> Option<String> {
    let Confinement { sandbox, limits, .. } = match grant.to_forms(forms) {
        Ok(confinement) => confinement,
        Err(error) => return Some(error.to_string()),
    };
    if !sandboxes::exists(&setup.config, sandbox) {
        return Some(format!("it runs in sandbox '{}', which this program has not", sandbox.as_str()));
    }
    let has_hosts = || setup.config.policy.capability_texts.net.as_ref().is_some_and(|net| !net.is_empty());
    if !sandboxes::reaches_hosts(sandbox) && has_hosts() {
        return Some(format!(
            "sandbox '{}' has no way to the hosts of [policy.capabilities] net",
            sandbox.as_str()
        ));
    }
    let is_kept = |limit: &&str| sandboxes::keeps(&setup.config, sandbox, limit);
    let unenforced: Vec<&str> = limits.kept_by_sandboxes().filter(|limit| !is_kept(limit)).collect();
    (!unenforced.is_empty())
        .then(|| format!("sandbox '{}' cannot limit {}", sandbox.as_str(), unenforced.join(", ")))
}
