//! How the parent declares a function of its own.

use crate::problem::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::{
    num::{NonZeroU32, NonZeroU64, NonZeroUsize},
    time::Duration,
};
use toolyard::{RetryPolicy, SideEffects, ToolClass, ToolSpec};

/// The longest name of a tool, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// How often a call may be tried.
const ATTEMPTS_MAX: u32 = 20;

/// A function of the parent, as it declares it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Value>,
    side_effects: SideEffects,
    #[serde(default)]
    class: Option<ToolClass>,
    #[serde(default)]
    recursive: Option<bool>,
    #[serde(default)]
    idempotent: Option<bool>,
    #[serde(default)]
    timeout_ms: Option<NonZeroU64>,
    #[serde(default)]
    grace_ms: Option<u64>,
    #[serde(default)]
    attempts: Option<NonZeroU32>,
    #[serde(default)]
    max_concurrency: Option<NonZeroUsize>,
    #[serde(default)]
    cost: Option<u64>,
    #[serde(default)]
    version: Option<String>,
}

impl Definition {
    /// The tool that it declares.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which cannot be.
    pub(super) fn spec(self) -> Result<ToolSpec, Problem> {
        if !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Err(Problem::invalid(
                "/definition/name",
                format!("a name has 1 to {NAME_BYTES_MAX} bytes"),
            ));
        }
        let mut spec = ToolSpec::new(self.name, self.side_effects);
        spec.description = self.description.unwrap_or_default();
        // Made from the types of another language, it has keywords that nobody here would write (V1).
        if let Some(schema) = self.input_schema {
            spec = spec.foreign_schema(schema);
        }
        spec.recursive = self.recursive.unwrap_or_default();
        spec.settings.concurrent = concurrent(self.class, self.side_effects, spec.recursive)?;
        spec.settings.idempotent = self.idempotent;
        spec.settings.timeout = self.timeout_ms.map(|ms| Duration::from_millis(ms.get()));
        spec.settings.timeout_grace = self.grace_ms.map(Duration::from_millis);
        spec.settings.max_concurrency = self.max_concurrency;
        spec.settings.cost = self.cost;
        if let Some(attempts) = self.attempts {
            if attempts.get() > ATTEMPTS_MAX {
                let why = format!("a call is tried at most {ATTEMPTS_MAX} times");
                return Err(Problem::invalid("/definition/attempts", why));
            }
            spec.settings.retry = Some(RetryPolicy::default().with_max_attempts(attempts.get()));
        }
        if let Some(version) = self.version {
            spec.version = version;
        }
        Ok(spec)
    }
}

/// Whether a tool is promoted to the concurrent class, if it may be in the class that is named.
fn concurrent(
    class: Option<ToolClass>,
    effects: SideEffects,
    recursive: bool,
) -> Result<Option<bool>, Problem> {
    let Some(class) = class else { return Ok(None) };
    if recursive {
        return match class {
            ToolClass::Concurrent => Ok(None),
            _ => Err(Problem::invalid("/definition/class", "a recursive tool is 'concurrent'")),
        };
    }
    match (class, effects.is_read_only()) {
        (ToolClass::Read, true) => Ok(None),
        (ToolClass::Serial, false) => Ok(Some(false)),
        (ToolClass::Concurrent, false) => Ok(Some(true)),
        (_, true) => Err(Problem::invalid(
            "/definition/class",
            format!("a tool with the side effects '{effects}' is 'read'"),
        )),
        (_, false) => {
            let why = format!("a tool with the side effects '{effects}' is 'serial' or 'concurrent'");
            Err(Problem::invalid("/definition/class", why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(definition: Value) -> Result<ToolSpec, Problem> {
        serde_json::from_value::<Definition>(definition).unwrap().spec()
    }

    /// AG-14: what a definition says is what the engine knows of the tool.
    #[test]
    fn a_definition_is_a_tool() {
        let all = json!({"name": "add", "description": "Adds.", "input_schema": {"type": "object"}, "side_effects": "write",
            "class": "concurrent", "idempotent": true, "timeout_ms": 5, "grace_ms": 6, "attempts": 3, "max_concurrency": 2,
            "cost": 7, "version": "2", "recursive": null});
        let spec = spec(all).unwrap();
        let settings = &spec.settings;
        assert_eq!(
            (spec.class(), settings.idempotent, settings.cost),
            (ToolClass::Concurrent, Some(true), Some(7))
        );
        assert_eq!(
            (spec.attempt_timeout(), settings.timeout_grace),
            (Duration::from_millis(5), Some(Duration::from_millis(6)))
        );
        assert_eq!(settings.retry.unwrap().max_attempts().get(), 3);
        assert_eq!((&*spec.description, &*spec.version), ("Adds.", "2"));
    }

    /// CL-1: a class that does not fit the side effects is refused, and not corrected.
    #[test]
    fn a_class_fits_the_side_effects() {
        let class = |effects: &str, class: &str, recursive: bool| {
            spec(json!({"name": "a", "side_effects": effects, "class": class, "recursive": recursive}))
                .map(|spec| spec.class())
                .ok()
        };
        assert_eq!(class("none", "read", false), Some(ToolClass::Read));
        assert_eq!(class("write", "serial", false), Some(ToolClass::Serial));
        assert_eq!(class("execute", "concurrent", true), Some(ToolClass::Concurrent));
        assert_eq!(
            (class("read", "serial", false), class("write", "read", false), class("write", "serial", true)),
            (None, None, None)
        );
    }
}
