//! Foreign schemas, which somebody else wrote: all of JSON Schema, but bounded and self-contained.
//!
//! ```text
//!   schema ─► size ─► parts, names, references ─► expansion ─► the draft's validator, which fetches nothing ─► Foreign
//!                     (index.rs)                  (expansion.rs)
//!   arguments ─► the same validator, every look at them counted (metered.rs) ─► fit, misfits, or exhausted
//! ```
//!
//! A foreign schema must not make the program use the network or read files, and must not cost more than its bounds,
//! whatever the arguments are. So it is checked before it is compiled, and its validations are bounded. References may
//! only lead to places within the schema.

mod expansion;
mod index;
#[cfg(test)]
mod tests;

use super::{
    DEPTH_MAX, Place, SchemaError, Validated,
    meter::{Effort, Exhausted},
    metered::{Counted, Metered},
    misfits,
};
use index::Index;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use std::{
    sync::{Arc, atomic::AtomicBool},
    thread,
};

/// The largest size of a foreign schema, as JSON text.
const BYTES_MAX: usize = 256 << 10;

/// How often the matching of a pattern may backtrack; beyond that the text does not match.
const BACKTRACKS_MAX: usize = 100_000;

/// The largest size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Keywords that refer to another schema.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords whose value is data, not a schema.
const DATA: &[&str] = &["enum", "const", "default", "examples", "example"];

/// Keywords whose value is a map of schemas by name.
const BY_NAME: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The stack for compiling a schema, in bytes. The compiler recurses over references.
const COMPILER_STACK: usize = 64 << 20;

/// The stack that a validation may use, in bytes. Where it begins, some is in use already.
const STACK_MAX: usize = 512 << 10;

/// The steps of a validation that delays nobody noticeably: they take about a millisecond.
const BRIEF_STEPS: u64 = 20_000;

/// The steps of the longest validation: they take some seconds.
const LONG_STEPS: u64 = 20_000_000;

/// A compiled foreign schema.
pub(crate) struct Foreign {
    validator: Validator<Metered>,
    /// Whether all misfits can be looked for, however long that takes.
    tells_places: bool,
    /// The steps for matching a text with its patterns.
    text_steps: usize,
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foreign").field("tells_places", &self.tells_places).finish_non_exhaustive()
    }
}

impl Foreign {
    /// Checks and compiles the schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > BYTES_MAX {
            return Err(SchemaError::TooLarge { bytes });
        }
        let index = Index::of(schema, draft(schema))?;
        expansion::check(&index)?;
        let (draft, text_steps) = (index.draft()?, index.text_steps());
        let validator = on_large_stack(|| build(schema, draft))?;
        Ok(Self { validator, tells_places: can_report_all(schema), text_steps })
    }

    /// Validates briefly, where others wait meanwhile.
    pub(crate) fn validate_briefly(&self, args: &Value) -> Validated {
        self.validate(args, BRIEF_STEPS, None)
    }

    /// Validates for as long as a validation may last, unless it is given up before.
    pub(crate) fn validate_at_length(&self, args: &Value, given_up: Option<Arc<AtomicBool>>) -> Validated {
        self.validate(args, LONG_STEPS, given_up)
    }

    fn validate(&self, args: &Value, steps: u64, given_up: Option<Arc<AtomicBool>>) -> Validated {
        let effort = Effort { steps, stack: STACK_MAX, text: self.text_steps, given_up };
        let fits = effort.clone().bound(|| self.validator.is_valid(Counted(args)))?;
        // Each step may find a misfit, and all are found before the first is reported.
        let telling = match self.tells_places {
            true => effort,
            false => Effort { steps: steps.min(BRIEF_STEPS), ..effort },
        };
        Ok(match fits {
            true => Ok(()),
            // That it does not fit is known: if it takes too long to say where, that is all that is said.
            false => Err(telling
                .bound(|| misfits::collect(&self.validator, Counted(args)))
                .unwrap_or_else(|Exhausted| misfits::terse())),
        })
    }
}

fn build(schema: &Value, draft: Draft) -> Result<Validator<Metered>, SchemaError> {
    let patterns =
        PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX).size_limit(PATTERN_BYTES_MAX);
    let options = jsonschema::options_for::<Metered>().with_draft(draft).should_validate_formats(false);
    options.offline().with_pattern_options(patterns).build(schema).map_err(|error| SchemaError::Malformed {
        pointer: error.instance_path().to_string(),
        why: misfits::message(&error),
    })
}

/// Does `work` on a thread with a large stack, and waits for it.
fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, SchemaError> + Send) -> Result<T, SchemaError> {
    let unable = || SchemaError::Malformed {
        pointer: String::new(),
        why: "it cannot be compiled: there is no thread for it, or the compiler has failed".to_owned(),
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("toolyard-schema".to_owned()).stack_size(COMPILER_STACK);
        let thread = builder.spawn_scoped(scope, work).map_err(|_| unable())?;
        thread.join().unwrap_or_else(|_| Err(unable()))
    })
}

/// The draft that the schema names; 2020-12 if it names none or an unknown one.
fn draft(schema: &Value) -> Draft {
    let declared = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let drafts = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    let known = drafts.into_iter().find(|(name, _)| declared.contains(name));
    known.map_or(Draft::Draft202012, |(_, draft)| draft)
}

/// Whether every misfit can be reported. If references lead to further references, there can be 2^depth misfits, and
/// finding them takes as long.
pub(crate) fn can_report_all(schema: &Value) -> bool {
    fn within(schema: &Value, in_parts: bool) -> bool {
        match schema {
            Value::Object(keywords) => keywords.iter().all(|(keyword, value)| match value {
                Value::String(to) if REFERENCES.contains(&keyword.as_str()) => !in_parts && leads_to_part(to),
                value => within(value, in_parts || matches!(keyword.as_str(), "$defs" | "definitions")),
            }),
            Value::Array(items) => items.iter().all(|item| within(item, in_parts)),
            _ => true,
        }
    }
    within(schema, false)
}

fn leads_to_part(to: &str) -> bool {
    to.starts_with("#/$defs/") || to.starts_with("#/definitions/")
}

fn in_bounds(at: &Place) -> Result<(), SchemaError> {
    match at.segments.len() > 2 * DEPTH_MAX {
        true => Err(SchemaError::TooDeep { pointer: at.pointer() }),
        false => Ok(()),
    }
}
