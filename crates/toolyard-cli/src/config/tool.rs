//! `[tools."NAME"]`: one tool's settings in place of what its author chose.

use super::{
    ConfigError,
    section::{Placed, Section},
};
use toolyard::{SideEffects, ToolClass, ToolConfig, ToolSpec};

const SIDE_EFFECTS: &[(&str, SideEffects)] = &[
    ("none", SideEffects::None),
    ("read", SideEffects::Read),
    ("write", SideEffects::Write),
    ("execute", SideEffects::Execute),
    ("network", SideEffects::Network),
];

const CLASSES: &[(&str, ToolClass)] =
    &[("read", ToolClass::Read), ("serial", ToolClass::Serial), ("concurrent", ToolClass::Concurrent)];

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
    if let Some(promoted) = promoted(&section, class, promotion, effects)? {
        config = config.concurrent(promoted);
    }
    if let Some(most) = section.count("max_concurrency")? {
        config = config.max_concurrency(most);
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
