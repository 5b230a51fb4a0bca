//! `[tools."NAME"]`: settings of one tool that replace its author's choices.

use super::{
    ConfigError, breaker, budget, retry,
    section::{Placed, Section, TableOrFalse},
};
use std::num::NonZeroUsize;
use toolyard::{
    BreakerPolicy, HiddenFrom, KeyConflict, LimitScope, Rate, RetryPolicy, SideEffects, ToolClass,
    ToolConfig, ToolSpec,
};

/// The word that stands for all sub-agents in `hidden_from`.
pub(crate) const SUB_AGENTS: &str = "sub-agents";

const SIDE_EFFECTS: &[(&str, SideEffects)] = &[
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
) -> Result<ToolConfig, ConfigError> {
    let config = concurrency(ToolConfig::default(), &mut section, spec)?;
    let config = resilience(config, &mut section, spec, policies)?;
    let config = rate_and_budget(config, &mut section)?;
    let config = visibility(config, &mut section)?;
    section.finish()?;
    Ok(config)
}

/// Reads which side effects its calls have, and which calls they may run beside.
fn concurrency(
    mut config: ToolConfig,
    section: &mut Section<'_>,
    spec: &ToolSpec,
) -> Result<ToolConfig, ConfigError> {
    let side_effects = section.choice("side_effects", SIDE_EFFECTS)?.map(|(effects, _)| effects);
    if let Some(side_effects) = side_effects {
        config = config.side_effects(side_effects);
    }
    let class = section.choice("class", CLASSES)?;
    let promotion = section.choice("concurrency", PROMOTION)?;
    let effects = side_effects.unwrap_or(spec.side_effects);
    let promoted = promoted(section, class, promotion, effects)?;
    if let Some(promoted) = promoted {
        config = config.concurrent(promoted);
    }
    let most = section.count("max_concurrency")?;
    if let Some(most) = most {
        config = config.max_concurrency(most);
    }
    if let Some(scope) = limit_scope(section, most.or(spec.max_concurrency))? {
        config = config.limit_scope(scope);
    }
    let class = effects.class(promoted.unwrap_or(spec.promoted));
    if let Some(scope) = serial_scope(section, class)? {
        config = config.serial_scope(scope);
    }
    Ok(config)
}

/// Reads how its calls deal with failures.
fn resilience(
    mut config: ToolConfig,
    section: &mut Section<'_>,
    spec: &ToolSpec,
    policies: Policies,
) -> Result<ToolConfig, ConfigError> {
    if let Some(idempotent) = section.boolean("idempotent")? {
        config = config.idempotent(idempotent);
    }
    if let Some(timeout) = section.duration("timeout")? {
        config = config.timeout(timeout);
    }
    if let Some(grace) = section.duration("timeout_grace")? {
        config = config.timeout_grace(grace);
    }
    if let Some(switched) = section.table_or_false("retry")? {
        config = config.retry(match switched {
            TableOrFalse::False => RetryPolicy::NONE,
            TableOrFalse::Table(table) => retry::read(table, spec.retry.unwrap_or(policies.retry))?,
        });
    }
    if let Some(switched) = section.table_or_false("breaker")? {
        config = config.breaker(match switched {
            TableOrFalse::False => BreakerPolicy::DISABLED,
            TableOrFalse::Table(table) => breaker::read(table, spec.breaker.unwrap_or(policies.breaker))?,
        });
    }
    if let Some(backend) = backend(section)? {
        config = config.backend(backend);
    }
    if let Some((conflict, _)) = section.choice("key_conflict", KEY_CONFLICTS)? {
        config = config.key_conflict(conflict);
    }
    Ok(config)
}

/// Reads how often it may be called, and at what cost.
fn rate_and_budget(mut config: ToolConfig, section: &mut Section<'_>) -> Result<ToolConfig, ConfigError> {
    if let Some(rate) = rate(section)? {
        config = config.rate(rate);
    }
    if let Some(units) = section.integer("cost", 0, u64::MAX)? {
        config = config.cost(units);
    }
    if let Some(budget) = budget::take(section, "budget")? {
        config = config.budget(budget);
    }
    Ok(config)
}

/// Reads who sees the tool, and who may call it.
fn visibility(mut config: ToolConfig, section: &mut Section<'_>) -> Result<ToolConfig, ConfigError> {
    if let Some(words) = section.strings("hidden_from")? {
        let mut hidden = HiddenFrom::default();
        for (word, at) in words {
            match word.as_str() {
                SUB_AGENTS => hidden.sub_agents = true,
                "sub_agents" | "subagents" => {
                    let what = format!("{}hidden_from: write '{SUB_AGENTS}'", section.prefix());
                    return Err(section.error(&at, what));
                }
                role if role.trim().is_empty() => {
                    let what = format!("{}hidden_from must name roles, or '{SUB_AGENTS}'", section.prefix());
                    return Err(section.error(&at, what));
                }
                role => drop(hidden.roles.insert(role.into())),
            }
        }
        config = config.hidden_from(hidden);
    }
    if let Some(requires) = section.boolean("requires_capability")? {
        config = config.requires_capability(requires);
    }
    Ok(config)
}

fn rate(section: &mut Section<'_>) -> Result<Option<Rate>, ConfigError> {
    let Some((text, at)) = section.string("rate")? else { return Ok(None) };
    let refused = |error| section.error(&at, format!("{}rate: {error}", section.prefix()));
    text.parse().map_err(refused).map(Some)
}

fn backend(section: &mut Section<'_>) -> Result<Option<String>, ConfigError> {
    let Some((name, at)) = section.string("backend")? else { return Ok(None) };
    if name.trim().is_empty() {
        let what = "backend must not be empty: name what the tool uses, such as \"api.example.com\"";
        return Err(section.error(&at, what));
    }
    Ok(Some(name))
}

/// The scope over which the tool's limit counts, if it has a limit.
fn limit_scope(
    section: &mut Section<'_>,
    limit: Option<NonZeroUsize>,
) -> Result<Option<LimitScope>, ConfigError> {
    let Some((scope, at)) = section.choice("limit_scope", LIMIT_SCOPES)? else { return Ok(None) };
    match limit {
        Some(_) => Ok(Some(scope)),
        None => Err(section.error(&at, "limit_scope has no effect without max_concurrency: set that too")),
    }
}

/// The scope of a tool's serial calls, if it has such calls.
fn serial_scope(section: &mut Section<'_>, class: ToolClass) -> Result<Option<String>, ConfigError> {
    let Some((scope, at)) = section.string("serial_scope")? else { return Ok(None) };
    let what = match class {
        _ if scope.trim().is_empty() => {
            "serial_scope must not be empty: name what the calls change, such as \"db\"".to_owned()
        }
        ToolClass::Serial => return Ok(Some(scope)),
        ToolClass::Read | ToolClass::Concurrent => {
            format!("serial_scope is for serial calls, and this tool's calls are {class}: remove it")
        }
    };
    Err(section.error(&at, what))
}

/// Whether `class` and `concurrency` promote the tool, if they agree with each other and with the side effects.
fn promoted(
    section: &Section<'_>,
    class: Option<Placed<ToolClass>>,
    promotion: Option<Placed<bool>>,
    effects: SideEffects,
) -> Result<Option<bool>, ConfigError> {
    let Some((class, at)) = class else {
        return Ok(promotion.map(|(on, _)| on));
    };
    let wanted = class == ToolClass::Concurrent;
    if let Some((on, at)) = promotion
        && on != wanted
    {
        let what = format!("concurrency contradicts class = \"{class}\": set only one of them");
        return Err(section.error(&at, what));
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
    Err(section.error(&at, what))
}
