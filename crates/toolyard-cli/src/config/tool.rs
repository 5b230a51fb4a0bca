//! `[tools."NAME"]`: settings of one tool that replace its author's choices.

use super::{
    breaker, budget,
    nearest::nearest,
    reconcile, retry,
    section::{Placed, Section, TableOrFalse},
};
use crate::reconcile::Reconcile;
use toolyard::{
    BreakerPolicy, HiddenFrom, KeyConflict, KeySource, LimitScope, Rate, RetryPolicy, SettingError,
    SideEffects, ToolClass, ToolConfig, ToolSettings, ToolSpec,
};

/// The word that stands for all sub-agents in `hidden_from`.
pub(crate) const SUB_AGENTS: &str = "sub-agents";

pub(super) const SIDE_EFFECTS: &[(&str, SideEffects)] = &[
    ("none", SideEffects::None),
    ("read", SideEffects::Read),
    ("write", SideEffects::Write),
    ("execute", SideEffects::Execute),
    ("network", SideEffects::Network),
];

const CLASSES: &[(&str, ToolClass)] =
    &[("read", ToolClass::Read), ("serial", ToolClass::Serial), ("concurrent", ToolClass::Concurrent)];

const LIMIT_SCOPES: &[(&str, LimitScope)] =
    &[("agent", LimitScope::Agent), ("tree", LimitScope::Tree), ("engine", LimitScope::Engine)];

const PROMOTION: &[(&str, bool)] = &[("on", true), ("off", false)];

const KEY_CONFLICTS: &[(&str, KeyConflict)] = &[("join", KeyConflict::Join), ("fail", KeyConflict::Fail)];

const KEYS: &[(&str, KeySource)] = &[("caller", KeySource::Caller), ("derive", KeySource::Derive)];

/// The policies of tools that do not set their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policies {
    pub(super) retry: RetryPolicy,
    pub(super) breaker: BreakerPolicy,
}

/// Reads the settings of the tool that its author described as `spec`.
pub(super) fn read(
    mut section: Section<'_>,
    spec: &ToolSpec,
    policies: Policies,
) -> (ToolConfig, Option<Reconcile>) {
    let side_effects = section.choice("side_effects", SIDE_EFFECTS).map(|(effects, _)| effects);
    let mut settings = concurrency(&mut section, spec, side_effects.unwrap_or(spec.side_effects));
    resilience(&mut settings, &mut section, spec, policies);
    settings.key = key(&mut section, side_effects.unwrap_or(spec.side_effects));
    settings.rate = rate(&mut section);
    settings.cost = section.integer("cost", 0, u64::MAX);
    settings.budget = budget::take(&mut section, "budget");
    settings.hidden_from = hidden_from(&mut section);
    settings.requires_capability = section.boolean("requires_capability");
    settings.approval_ignores = approval_ignores(&mut section, spec);
    let reconcile = reconcile::take(&mut section);
    section.finish();
    (ToolConfig { side_effects, settings }, reconcile)
}

/// Reads which calls its calls may run beside.
fn concurrency(section: &mut Section<'_>, spec: &ToolSpec, effects: SideEffects) -> ToolSettings {
    let class = section.choice("class", CLASSES);
    let promotion = section.choice("concurrency", PROMOTION);
    let max_concurrency = section.count("max_concurrency");
    let limit_scope = section.choice("limit_scope", LIMIT_SCOPES);
    let serial_scope = section.string("serial_scope");
    let mut settings = ToolSettings { max_concurrency, ..ToolSettings::default() };
    if !section.is_valid() {
        return settings;
    }
    if let Some((scope, at)) = limit_scope {
        settings.limit_scope = Some(scope);
        if max_concurrency.or(spec.settings.max_concurrency).is_none() {
            section.report(&at, "limit_scope has no effect without max_concurrency: set that too");
        }
    }
    match promoted(class, promotion, effects) {
        Ok(promoted) => {
            settings.concurrent = promoted;
            let class = effects.class(promoted.or(spec.settings.concurrent).unwrap_or_default());
            if let Some((scope, at)) = serial_scope {
                check_serial_scope(&scope, class).unwrap_or_else(|what| section.report(&at, what));
                settings.serial_scope = Some(scope.into());
            }
        }
        Err((what, at)) => section.report(&at, what),
    }
    settings
}

/// Reads how its calls deal with failures.
fn resilience(settings: &mut ToolSettings, section: &mut Section<'_>, spec: &ToolSpec, policies: Policies) {
    settings.idempotent = section.boolean("idempotent");
    settings.timeout = section.duration("timeout");
    settings.timeout_grace = section.duration("timeout_grace");
    settings.retry = section.table_or_false("retry").map(|switched| match switched {
        TableOrFalse::False => RetryPolicy::NONE,
        TableOrFalse::Table(table) => retry::read(table, spec.settings.retry.unwrap_or(policies.retry)),
    });
    settings.breaker = section.table_or_false("breaker").map(|switched| match switched {
        TableOrFalse::False => BreakerPolicy::DISABLED,
        TableOrFalse::Table(table) => breaker::read(table, spec.settings.breaker.unwrap_or(policies.breaker)),
    });
    settings.backend = backend(section).map(Into::into);
    settings.key_conflict = section.choice("key_conflict", KEY_CONFLICTS).map(|(conflict, _)| conflict);
}

/// Reads where the idempotency keys of its calls come from.
fn key(section: &mut Section<'_>, effects: SideEffects) -> Option<KeySource> {
    let (key, at) = section.choice("key", KEYS)?;
    if key == KeySource::Derive && effects.is_read_only() {
        section.report(&at, format!("{}{}", section.prefix(), SettingError::KeyOfReader));
    }
    Some(key)
}

/// Reads who does not see the tool.
fn hidden_from(section: &mut Section<'_>) -> Option<HiddenFrom> {
    let words = section.strings("hidden_from")?;
    let mut hidden = HiddenFrom::default();
    for (word, at) in words {
        match word.as_str() {
            SUB_AGENTS => hidden.sub_agents = true,
            "sub_agents" | "subagents" => {
                section.report(&at, format!("{}hidden_from: write '{SUB_AGENTS}'", section.prefix()));
            }
            role if role.trim().is_empty() => {
                let what = format!("{}hidden_from must name roles, or '{SUB_AGENTS}'", section.prefix());
                section.report(&at, what);
            }
            role => drop(hidden.roles.insert(role.into())),
        }
    }
    Some(hidden)
}

/// Reads which arguments an "always" leaves open.
fn approval_ignores(section: &mut Section<'_>, spec: &ToolSpec) -> Option<Vec<String>> {
    let words = section.strings("approval_ignores")?;
    let known = spec.input_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for (word, at) in &words {
        if let Some(known) = known
            && !known.contains_key(word)
        {
            let nearest = nearest(word, known.keys().map(String::as_str));
            let what = "approval_ignores: the tool has no argument";
            section.report(at, format!("{}{what} '{word}'; {nearest}", section.prefix()));
        }
    }
    Some(words.into_iter().map(|(word, _)| word).collect())
}

fn rate(section: &mut Section<'_>) -> Option<Rate> {
    let (text, at) = section.string("rate")?;
    section.parsed("rate", &at, text.parse::<Rate>())
}

fn backend(section: &mut Section<'_>) -> Option<String> {
    let (name, at) = section.string("backend")?;
    if name.trim().is_empty() {
        let what = "backend must not be empty: name what the tool uses, such as \"api.example.com\"";
        section.report(&at, what);
    }
    Some(name)
}

/// Checks the scope of a tool's serial calls: whether it has such calls.
fn check_serial_scope(scope: &str, class: ToolClass) -> Result<(), String> {
    match class {
        _ if scope.trim().is_empty() => {
            Err("serial_scope must not be empty: name what the calls change, such as \"db\"".to_owned())
        }
        ToolClass::Serial => Ok(()),
        ToolClass::Read | ToolClass::Concurrent => {
            Err(format!("serial_scope is for serial calls, and this tool's calls are {class}: remove it"))
        }
    }
}

/// Whether `class` and `concurrency` promote the tool. The error is placed: they contradict each other or the side
/// effects.
fn promoted(
    class: Option<Placed<ToolClass>>,
    promotion: Option<Placed<bool>>,
    effects: SideEffects,
) -> Result<Option<bool>, Placed<String>> {
    let Some((class, at)) = class else {
        return Ok(promotion.map(|(on, _)| on));
    };
    let wanted = class == ToolClass::Concurrent;
    if let Some((on, at)) = promotion
        && on != wanted
    {
        let what = format!("concurrency contradicts class = \"{class}\": set only one of them");
        return Err((what, at));
    }
    if effects.class(wanted) == class {
        return Ok(Some(wanted));
    }
    let need = match class {
        ToolClass::Read => "\"none\" or \"read\"",
        ToolClass::Serial | ToolClass::Concurrent => "\"write\", \"execute\" or \"network\"",
    };
    let what = format!(
        "class = \"{class}\" does not fit side effects {effects}: set side_effects to {need} if the tool has them"
    );
    Err((what, at))
}
