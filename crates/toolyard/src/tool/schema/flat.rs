//! A short path for what most tools take: an object whose properties have a type and nothing else.
//!
//! It knows of most arguments that they fit. Of all others it knows nothing: the validator decides.

#[cfg(test)]
mod tests;

use super::CHECKED;
use serde_json::{Map, Value};

/// The most properties it looks at: each is a bit of a word, and is looked for among all others.
const PROPERTIES_MAX: usize = 32;

/// An object schema whose properties are scalars.
#[derive(Debug)]
pub(super) struct Flat {
    properties: Vec<Property>,
    /// The places of those that are required, each a bit.
    required: u32,
}

#[derive(Debug)]
struct Property {
    name: Box<str>,
    scalar: Scalar,
}

#[derive(Debug, Clone, Copy)]
enum Scalar {
    Null,
    Boolean,
    Integer,
    Number,
    String,
}

impl Flat {
    /// Reads a schema of the subset; `None` if it checks anything that this does not know.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let keywords = schema.as_object()?;
        if !checks_only(keywords, &["type", "properties", "required", "additionalProperties"])
            || keywords.get("type")? != "object"
        {
            return None;
        }
        let properties = keywords.get("properties")?.as_object()?;
        let properties: Vec<_> = properties.iter().map(Property::of).collect::<Option<_>>()?;
        if properties.len() > PROPERTIES_MAX {
            return None;
        }
        let mut required = 0;
        for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str()?;
            required |= 1 << properties.iter().position(|property| *property.name == *name)?;
        }
        Some(Self { properties, required })
    }

    /// Whether the arguments fit for certain.
    pub(super) fn surely_fits(&self, args: &Value) -> bool {
        let Value::Object(fields) = args else { return false };
        let mut missing = self.required;
        for (name, value) in fields {
            let at = self.properties.iter().position(|property| *property.name == **name);
            let Some(at) = at.filter(|at| self.properties[*at].scalar.surely_fits(value)) else {
                return false;
            };
            missing &= !(1 << at);
        }
        missing == 0
    }
}

impl Property {
    fn of((name, schema): (&String, &Value)) -> Option<Self> {
        let keywords = schema.as_object()?;
        if !checks_only(keywords, &["type", "format"]) {
            return None;
        }
        let scalar = match keywords.get("type")?.as_str()? {
            "null" => Scalar::Null,
            "boolean" => Scalar::Boolean,
            "integer" => Scalar::Integer,
            "number" => Scalar::Number,
            "string" => Scalar::String,
            _ => return None,
        };
        Some(Self { name: name.as_str().into(), scalar })
    }
}

impl Scalar {
    fn surely_fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_)) => true,
            // `1.0` is an integer too, which the validator knows.
            (Self::Integer, Value::Number(number)) => !number.is_f64(),
            _ => false,
        }
    }
}

/// Whether a schema checks nothing but this.
fn checks_only(keywords: &Map<String, Value>, known: &[&str]) -> bool {
    let checks = |keyword: &&String| CHECKED.contains(&keyword.as_str());
    keywords.keys().filter(checks).all(|keyword| known.contains(&keyword.as_str()))
}
