//! The subset of JSON Schema that arguments are checked against, compiled once per tool.
//!
//! A tool's own schema may use `type`, `enum`, `required`, `properties`, `items`, bounds on numbers, lengths and
//! counts, and `additionalProperties` as a boolean. That subset means the same under Draft 7 and 2020-12, and to
//! every provider. A keyword of 2020-12 outside the subset is refused at registration, because ignoring it would let
//! calls through that the tool's author meant to stop. A keyword that 2020-12 does not define means nothing to any
//! validator; it is kept, with a warning.
//!
//! A foreign schema, which somebody else wrote, need not keep to the subset; `foreign.rs` has its bounds.

mod flat;
mod foreign;
mod meter;
mod metered;
mod misfits;
mod whole;

use flat::Flat;
use foreign::Foreign;
pub(crate) use meter::Exhausted;
use serde_json::{Map, Value};
use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};
use toolyard_core::ValidationError;

/// How deep a schema may nest.
const DEPTH_MAX: usize = 64;

/// The keywords of the subset that check something; the validator checks the form of most of them.
const CHECKED: &[&str] = &[
    "type",
    "enum",
    "required",
    "properties",
    "items",
    "additionalProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "format",
];

/// Keywords that describe and check nothing.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// All other keywords that 2020-12 defines.
const REFUSED: &[&str] = &[
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$vocabulary",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Why a schema is refused. Pointers are JSON pointers into the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword is outside the subset.
    #[error("schema keyword at '{pointer}' is outside the supported subset of JSON Schema")]
    Unsupported {
        /// Where it is.
        pointer: String,
    },
    /// The value of a keyword is invalid.
    #[error("schema at '{pointer}' is malformed: {why}")]
    Malformed {
        /// Where it is.
        pointer: String,
        /// What is wrong.
        why: String,
    },
    /// The schema is nested too deeply.
    #[error("schema at '{pointer}' nests deeper than {DEPTH_MAX} levels")]
    TooDeep {
        /// Where the bound is exceeded.
        pointer: String,
    },
    /// A foreign schema is too large.
    #[error("the schema has {bytes} bytes, more than the limit of 262144")]
    TooLarge {
        /// Its size as JSON text.
        bytes: usize,
    },
    /// A foreign schema refers to something outside itself.
    #[error(
        "schema at '{pointer}' refers outside itself: a reference must lead to a part of the same document, by '#' or by an $id in it"
    )]
    Outside {
        /// Where it is.
        pointer: String,
    },
    /// The arguments as a whole are no struct, of a schema that was derived from their type.
    #[error("the arguments are {what}, and a model sends an object: take a struct with a field of that type")]
    NoObject {
        /// What they are.
        what: &'static str,
    },
    /// Too many parts of a foreign schema apply to one value.
    #[error(
        "more than 10000 parts of the schema apply to one value, or more than 128 within each other, where a part counts as often as it is used"
    )]
    Expands,
}

/// A keyword in a schema that 2020-12 does not define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaWarning {
    /// The JSON pointer to it.
    pub pointer: String,
}

impl fmt::Display for SchemaWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema keyword at '{}' is not one of JSON Schema 2020-12 and checks nothing", self.pointer)
    }
}

/// A compiled schema.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard::{Schema, SchemaError};
/// let schema = Schema::compile(&json!({"type": "object", "required": ["city"]})).unwrap();
/// assert!(schema.validate(&json!({"city": "Oslo"})).is_ok());
/// assert_eq!(schema.validate(&json!({})).unwrap_err()[0].pointer, "");
///
/// let refused = Schema::compile(&json!({"properties": {"n": {"$ref": "#/x"}}})).unwrap_err();
/// assert_eq!(refused, SchemaError::Unsupported { pointer: "/properties/n/$ref".into() });
/// ```
#[derive(Debug)]
pub struct Schema {
    check: Check,
    warnings: Vec<SchemaWarning>,
}

#[derive(Debug)]
enum Check {
    /// Any object: the schema of tools that declare none.
    AnyObject,
    Compiled(Box<Compiled>),
    /// One that somebody else wrote, whose validations are bounded.
    Foreign(Box<Foreign>),
}

/// A compiled schema of the subset.
#[derive(Debug)]
struct Compiled {
    /// Sees of most arguments that they fit, if the schema is of that kind.
    flat: Option<Flat>,
    validator: jsonschema::Validator,
}

impl Compiled {
    #[inline]
    fn fits(&self, args: &Value) -> bool {
        self.flat.as_ref().is_some_and(|flat| flat.surely_fits(args)) || self.validator.is_valid(args)
    }
}

impl Schema {
    /// Checks that a schema keeps to the subset, and compiles it.
    ///
    /// # Errors
    /// [`SchemaError`] with the place of the first violation.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut warnings = Vec::new();
        check(schema, &mut Place::root(), &mut warnings)?;
        if *schema == serde_json::json!({"type": "object"}) {
            return Ok(Self { check: Check::AnyObject, warnings });
        }
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        let validator = options.should_validate_formats(false).build(schema).map_err(|error| {
            SchemaError::Malformed { pointer: error.instance_path().to_string(), why: error.to_string() }
        })?;
        let compiled = Compiled { flat: Flat::of(schema), validator };
        Ok(Self { check: Check::Compiled(Box::new(compiled)), warnings })
    }

    /// Compiles a schema that somebody else wrote. It may use all of JSON Schema, in the draft it names or else
    /// 2020-12. Tuples of older drafts (a list of `items`) are understood without a `$schema`, and references by `$id`
    /// within the document. It is bounded: 256 KiB, 64 levels, no reference outside itself, and at most 10 000 parts
    /// that apply to one value, counted as often as they are used. `format` only describes and is not checked.
    ///
    /// # Errors
    /// [`SchemaError`] with the place of the first violation.
    pub fn compile_foreign(schema: &Value) -> Result<Self, SchemaError> {
        let check = Check::Foreign(Box::new(Foreign::compile(schema)?));
        Ok(Self { check, warnings: Vec::new() })
    }

    /// Compiles a schema that was derived from the type of a tool's arguments: one of the subset if it keeps to that,
    /// otherwise with the bounds of a [foreign](Self::compile_foreign) one. The arguments as a whole have to be an object
    /// of one kind, because some providers accept nothing else (KT-1).
    ///
    /// # Errors
    /// [`SchemaError`]: [`NoObject`](SchemaError::NoObject) if they are not.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard::Schema;
    /// let sizes = json!({"type": "object", "properties": {"sizes": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    /// assert!(Schema::compile(&sizes).is_err()); // not of the subset
    /// assert!(Schema::compile_typed(&sizes).unwrap().validate(&json!({"sizes": {"a": 1}})).is_ok());
    /// let refused = Schema::compile_typed(&json!({"type": "array"})).unwrap_err();
    /// assert!(refused.to_string().starts_with("the arguments are a list"));
    /// ```
    pub fn compile_typed(schema: &Value) -> Result<Self, SchemaError> {
        if let Some(what) = whole::other_than_an_object(schema) {
            return Err(SchemaError::NoObject { what });
        }
        Self::compile(schema).or_else(|_| Self::compile_foreign(schema))
    }

    /// Keywords that check nothing, for `toolyard check`.
    pub fn warnings(&self) -> &[SchemaWarning] {
        &self.warnings
    }

    /// Checks whether the arguments fit. A schema of the subset is checked in time proportional to the arguments. One
    /// that somebody else wrote is given up after some seconds; engines also bound the time by
    /// [`Limits::validation_timeout`](crate::config::Limits::validation_timeout), and stay responsive meanwhile.
    ///
    /// # Errors
    /// The first 100 places where they do not, as JSON pointers into the arguments. A message has at most 200
    /// characters: if it would be longer, it shows only the start of the value, and is cut if that is not enough; `…`
    /// marks what is left out.
    pub fn validate(&self, args: &Value) -> Result<(), Vec<ValidationError>> {
        self.validate_at_length(args, None).unwrap_or_else(|Exhausted| {
            let message = "checking this takes too long under the tool's schema".to_owned();
            Err(vec![ValidationError { pointer: String::new(), message }])
        })
    }

    /// The same where others wait meanwhile; [`Exhausted`] if it takes longer than about a millisecond.
    #[inline]
    pub(crate) fn validate_briefly(&self, args: &Value) -> Validated {
        self.validate_with(args, |foreign| foreign.validate_briefly(args))
    }

    /// The same until the steps of the longest validation are used up, or `given_up` is set.
    pub(crate) fn validate_at_length(&self, args: &Value, given_up: Option<Arc<AtomicBool>>) -> Validated {
        self.validate_with(args, |foreign| foreign.validate_at_length(args, given_up))
    }

    #[inline]
    fn validate_with(&self, args: &Value, foreign: impl FnOnce(&Foreign) -> Validated) -> Validated {
        Ok(match &self.check {
            Check::AnyObject if args.is_object() => Ok(()),
            Check::AnyObject => {
                Err(vec![ValidationError { pointer: String::new(), message: "must be an object".to_owned() }])
            }
            Check::Compiled(schema) if schema.fits(args) => Ok(()),
            Check::Compiled(schema) => Err(misfits::collect(&schema.validator, args)),
            Check::Foreign(schema) => return foreign(schema),
        })
    }
}

/// Whether arguments fit, or how they do not, unless the validation was ended before that was known.
pub(crate) type Validated = Result<Result<(), Vec<ValidationError>>, Exhausted>;

/// The current place in the schema during a check.
struct Place {
    segments: Vec<String>,
}

impl Place {
    fn root() -> Self {
        Self { segments: Vec::new() }
    }

    fn within<T>(
        &mut self,
        segment: &str,
        check: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        self.segments.push(segment.replace('~', "~0").replace('/', "~1"));
        let done = check(self);
        self.segments.pop();
        done
    }

    fn pointer(&self) -> String {
        self.segments.iter().flat_map(|segment| ["/", segment]).collect()
    }

    fn malformed<T>(&self, why: &str) -> Result<T, SchemaError> {
        Err(SchemaError::Malformed { pointer: self.pointer(), why: why.to_owned() })
    }
}

fn check(schema: &Value, at: &mut Place, warnings: &mut Vec<SchemaWarning>) -> Result<(), SchemaError> {
    if at.segments.len() > 2 * DEPTH_MAX {
        return Err(SchemaError::TooDeep { pointer: at.pointer() });
    }
    match schema {
        Value::Bool(_) => Ok(()),
        Value::Object(keywords) => keywords.iter().try_for_each(|(keyword, value)| {
            at.within(keyword, |at| check_keyword(keyword, value, at, warnings))
        }),
        _ => at.malformed("a schema must be an object or a boolean"),
    }
}

fn check_keyword(
    keyword: &str,
    value: &Value,
    at: &mut Place,
    warnings: &mut Vec<SchemaWarning>,
) -> Result<(), SchemaError> {
    match keyword {
        "properties" => check_properties(value, at, warnings),
        "items" => check(value, at, warnings),
        "additionalProperties" if !value.is_boolean() => {
            Err(SchemaError::Unsupported { pointer: at.pointer() })
        }
        keyword if CHECKED.contains(&keyword) || ANNOTATIONS.contains(&keyword) => Ok(()),
        keyword if REFUSED.contains(&keyword) => Err(SchemaError::Unsupported { pointer: at.pointer() }),
        _ => {
            warnings.push(SchemaWarning { pointer: at.pointer() });
            Ok(())
        }
    }
}

fn check_properties(
    value: &Value,
    at: &mut Place,
    warnings: &mut Vec<SchemaWarning>,
) -> Result<(), SchemaError> {
    let Some(properties): Option<&Map<String, Value>> = value.as_object() else {
        return at.malformed("properties must be an object of schemas");
    };
    properties.iter().try_for_each(|(name, schema)| at.within(name, |at| check(schema, at, warnings)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(schema: Value) -> String {
        Schema::compile(&schema).unwrap_err().to_string()
    }

    #[test]
    fn a_keyword_outside_the_subset_is_refused_by_its_pointer() {
        let schema = json!({"type": "object", "properties": {"a/b": {"items": {"anyOf": []}}}});
        assert_eq!(
            refused(schema),
            "schema keyword at '/properties/a~1b/items/anyOf' is outside the supported subset of JSON Schema"
        );
        for keyword in REFUSED {
            assert!(refused(json!({*keyword: {}})).contains(&format!("'/{keyword}'")));
        }
    }

    #[test]
    fn additional_properties_as_a_schema_is_refused() {
        assert!(
            refused(json!({"additionalProperties": {"type": "string"}})).contains("'/additionalProperties'")
        );
        assert!(Schema::compile(&json!({"additionalProperties": false})).is_ok());
    }

    #[test]
    fn a_property_may_have_the_name_of_a_keyword() {
        let schema = json!({"properties": {"$ref": {"type": "string"}, "not": {"type": "string"}}});
        assert!(Schema::compile(&schema).is_ok());
    }

    #[test]
    fn an_unknown_word_is_kept_and_warned_of() {
        let schema = Schema::compile(&json!({"optional": true, "properties": {"x": {"colour": 1}}})).unwrap();
        let pointers: Vec<_> = schema.warnings().iter().map(|warning| warning.pointer.as_str()).collect();
        assert_eq!(pointers, ["/optional", "/properties/x/colour"]);
    }

    #[test]
    fn a_malformed_schema_is_refused() {
        assert!(refused(json!({"type": "dict"})).contains("'/type' is malformed"));
        assert!(refused(json!({"required": "x"})).contains("'/required' is malformed"));
        assert!(refused(json!({"items": [{}]})).contains("'/items' is malformed"));
        assert!(refused(json!(7)).contains("'' is malformed"));
    }

    #[test]
    fn a_schema_that_nests_without_end_is_refused() {
        let deep = (0..200).fold(json!({}), |inner, _| json!({"items": inner}));
        assert!(refused(deep).contains("nests deeper"));
    }

    #[test]
    fn a_format_tells_and_does_not_check() {
        let schema = Schema::compile(&json!({"type": "string", "format": "ipv4"})).unwrap();
        assert!(schema.validate(&json!("not an address")).is_ok());
    }
}
