//! `[tools."NAME"]`: one tool's settings in place of what its author chose.

use super::{
    ConfigError,
    section::{Placed, Section},
};
use std::num::NonZeroUsize;
use toolyard::{LimitScope, SideEffects, ToolClass, ToolConfig, ToolSpec};

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

/// Reads the settings of the tool that is `spec` so far.
pub(super) fn read(mut section: Section<'_>, spec: &ToolSpec) -> Result<ToolConfig, ConfigError> {
    let mut config = ToolConfig::default();
    let side_effects = section.choice("side_effects", SIDE_EFFECTS)?.map(|(effects, _)| effects);
    if let Some(side_effects) = side_effects {
        config = config.side_effects(side_effects);
    }
    let class = section.choice("class", CLASSES)?;
    let promotion = section.choice("concurrency", PROMOTION)?;
    let effects = side_effects.unwrap_or(spec.side_effects);
    let promoted = promoted(&section, class, promotion, effects)?;
    if let Some(promoted) = promoted {
        config = config.concurrent(promoted);
    }
    let most = section.count("max_concurrency")?;
    if let Some(most) = most {
        config = config.max_concurrency(most);
    }
    if let Some(scope) = limit_scope(&mut section, most.or(spec.max_concurrency))? {
        config = config.limit_scope(scope);
    }
    let class = effects.class(promoted.unwrap_or(spec.promoted));
    if let Some(scope) = serial_scope(&mut section, class)? {
        config = config.serial_scope(scope);
    }
    if let Some(idempotent) = section.switch("idempotent")? {
        config = config.idempotent(idempotent);
    }
    if let Some(timeout) = section.duration("timeout")? {
        config = config.timeout(timeout);
    }
    section.finish()?;
    Ok(config)
}

/// Over what the limit of the tool counts, if it has one.
fn limit_scope(
    section: &mut Section<'_>,
    limit: Option<NonZeroUsize>,
) -> Result<Option<LimitScope>, ConfigError> {
    let Some((scope, at)) = section.choice("limit_scope", LIMIT_SCOPES)? else { return Ok(None) };
    match limit {
        Some(_) => Ok(Some(scope)),
        None => Err(section.error(&at, "limit_scope says over what max_concurrency counts: set that too")),
    }
}

/// The scope of a tool's serial calls, if it has such calls.
fn serial_scope(section: &mut Section<'_>, class: ToolClass) -> Result<Option<String>, ConfigError> {
    let Some((scope, at)) = section.text("serial_scope")? else { return Ok(None) };
    let what = match class {
        _ if scope.trim().is_empty() => {
            "serial_scope must name what the calls change, such as \"db\"".to_owned()
        }
        ToolClass::Serial => return Ok(Some(scope)),
        ToolClass::Read | ToolClass::Concurrent => {
            format!("serial_scope is for serial calls, and this tool's are {class}: leave one of the two out")
        }
    };
    Err(section.error(&at, what))
}

/// What `class` and `concurrency` say of promotion, if they agree with each other and with the side effects.
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
        let what = format!("concurrency contradicts class = \"{class}\": give one of the two");
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
        "class = \"{class}\" does not go with side effects {effects}: set side_effects to {need} if that is what it has"
    );
    Err(section.error(&at, what))
}
