//! The schema of an argument type (KT-1).
//!
//! ```text
//!   type ─► inlined, in the words of the subset ─┬─ is of the subset: that, which every provider reads alike
//!                                                └─ is not ─► all of 2020-12, with its $defs
//! ```

use crate::tool::schema::Schema;
use schemars::{
    JsonSchema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Value, json};

/// The schema: without references if it can be one of the subset, which has none, and as the type has it otherwise.
pub(super) fn schema_of<A: JsonSchema>() -> Value {
    let inlined = generated::<A>(true);
    match Schema::compile(&inlined) {
        Ok(_) => inlined,
        Err(_) => generated::<A>(false),
    }
}

fn generated<A: JsonSchema>(inlined: bool) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = inlined);
    let settings = settings.with_transform(Subset);
    let schema = unwrapped(settings.into_generator().into_root_schema_for::<A>().to_value());
    // The schema of `()` is null, but calls always send an object.
    if schema["type"] == "null" { json!({"type": "object"}) } else { schema }
}

/// The schema with what its root refers to in the root itself, as of a struct that is another one by a new name.
fn unwrapped(mut schema: Value) -> Value {
    const REFERENCES_MAX: usize = 16;
    for _ in 0..REFERENCES_MAX {
        let to = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        let Some(Value::Object(of)) = to.and_then(|to| schema.pointer(to)).cloned() else { break };
        let Value::Object(root) = &mut schema else { break };
        root.remove("$ref");
        for (keyword, value) in of {
            root.entry(keyword).or_insert(value);
        }
    }
    schema
}

/// Rewrites schemars' `oneOf` and `anyOf` where the subset can express the same without them.
#[derive(Debug, Clone)]
struct Subset;

impl Transform for Subset {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        plain_enum(schema);
        nullable(schema);
    }
}

/// Rewrites an `Option`, which schemars writes as `anyOf` of a schema and null: null joins the schema's types and
/// values.
fn nullable(schema: &mut schemars::Schema) {
    let Some(Value::Array(either)) = schema.get("anyOf") else { return };
    let [Value::Object(some), none] = either.as_slice() else { return };
    let Some(Value::String(kind)) = some.get("type").filter(|_| *none == json!({"type": "null"})) else {
        return;
    };
    let (kind, some) = (json!([kind, "null"]), some.clone());
    schema.remove("anyOf");
    for (keyword, value) in some {
        // The field's own keywords win over those of its type.
        if schema.get(&keyword).is_none() {
            schema.insert(keyword, value);
        }
    }
    schema.insert("type".to_owned(), kind);
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
}

/// Rewrites a plain enum whose variants have descriptions: `oneOf` of `const`s and `enum`s becomes one `enum`, and
/// the descriptions of the variants are appended to its own.
fn plain_enum(schema: &mut schemars::Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let Some(variants) = variants.iter().map(variant).collect::<Option<Vec<_>>>() else { return };
    let own = schema.get("description").and_then(Value::as_str).map(str::to_owned);
    let described = variants
        .iter()
        .filter_map(|(values, described)| Some(format!("{}: {}", values.first()?, described.as_ref()?)));
    let description = own.into_iter().chain(described).collect::<Vec<_>>().join("\n");
    let values: Vec<Value> = variants.iter().flat_map(|(values, _)| values.clone()).collect();
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), values.into());
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.into());
    }
}

/// The strings of a variant and its description; `None` if the variant is not a plain string.
fn variant(schema: &Value) -> Option<(Vec<Value>, Option<String>)> {
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(value), None) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    let described = schema.get("description").and_then(Value::as_str).map(str::to_owned);
    values.iter().all(Value::is_string).then_some((values, described))
}
