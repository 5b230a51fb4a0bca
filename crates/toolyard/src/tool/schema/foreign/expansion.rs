//! How much of a schema applies to one value.
//!
//! A part applies other parts to the value that it is applied to: by reference, as all, any or one of several, or on a
//! condition. These apply others in turn. Written out, that is the part's *expansion*. Two uses of the same part in
//! each of 39 definitions expand to 2^39 parts, in a schema of two kilobytes.

use super::index::Index;
use crate::tool::schema::SchemaError;
use foldhash::HashMap;
use serde_json::{Map, Value};

/// The most parts that may apply to one value.
pub(crate) const EXPANSION_MAX: u64 = 10_000;

/// How many parts may apply to one value within each other. Validators recurse over them.
pub(crate) const HEIGHT_MAX: usize = 128;

/// Keywords with one part that applies to the same value.
const ONE: &[&str] = &["not", "if", "then", "else"];

/// Keywords with a list of such parts.
const SEVERAL: &[&str] = &["allOf", "anyOf", "oneOf"];

/// Keywords with such parts by name.
const NAMED: &[&str] = &["dependentSchemas", "dependencies"];

/// Keywords that apply the other parts once more, to find out which ones fitted.
const TWICE: &[&str] = &["unevaluatedProperties", "unevaluatedItems"];

/// Checks that no part of the schema expands to more than [`EXPANSION_MAX`] parts, or to more than [`HEIGHT_MAX`]
/// within each other. Takes time in proportion to the schema.
pub(crate) fn check(index: &Index<'_>) -> Result<(), SchemaError> {
    let mut expansion = Expansion { index, known: HashMap::default() };
    index.parts().try_for_each(|part| expansion.of(part, 1).map(drop))
}

/// The sizes of the expansions that are known, each computed once.
struct Expansion<'i, 'a> {
    index: &'i Index<'a>,
    /// By the place of the part in memory.
    known: HashMap<usize, Expanded>,
}

/// A part written out.
#[derive(Clone, Copy)]
struct Expanded {
    /// How many parts there are.
    size: u64,
    /// How many of them are within each other.
    height: usize,
}

impl<'a> Expansion<'_, 'a> {
    fn of(&mut self, part: &'a Value, depth: usize) -> Result<Expanded, SchemaError> {
        const ONE_PART: Expanded = Expanded { size: 1, height: 1 };
        let Value::Object(keywords) = part else { return Ok(ONE_PART) };
        let address = std::ptr::from_ref(part).addr();
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        if depth > HEIGHT_MAX {
            return Err(SchemaError::Expands);
        }
        // A part that comes back to itself on the same value is not applied again.
        self.known.insert(address, ONE_PART);
        let (mut size, mut height) = (0_u64, 0);
        for inner in parts(keywords).chain(self.index.targets(keywords).iter().copied()) {
            let inner = self.of(inner, depth + 1)?;
            (size, height) = (size.saturating_add(inner.size), height.max(inner.height));
        }
        let times = if keywords.keys().any(|keyword| TWICE.contains(&keyword.as_str())) { 2 } else { 1 };
        let expanded = Expanded { size: size.saturating_mul(times).saturating_add(1), height: height + 1 };
        if expanded.size > EXPANSION_MAX || expanded.height > HEIGHT_MAX {
            return Err(SchemaError::Expands);
        }
        self.known.insert(address, expanded);
        Ok(expanded)
    }
}

/// The parts that apply to the same value, except by reference.
fn parts(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    keywords.iter().flat_map(|(keyword, value)| {
        let keyword = keyword.as_str();
        let one = ONE.contains(&keyword).then_some(value);
        let several = value.as_array().filter(|_| SEVERAL.contains(&keyword));
        let named = value.as_object().filter(|_| NAMED.contains(&keyword));
        one.into_iter().chain(several.into_iter().flatten()).chain(named.into_iter().flat_map(Map::values))
    })
}
