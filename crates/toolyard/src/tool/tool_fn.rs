//! A tool from a typed async closure.

mod integers;

use schemars::{
    JsonSchema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{any::TypeId, future::Future, marker::PhantomData, sync::Arc};
use toolyard_core::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// Makes a tool of a typed async closure. If the spec has no schema, it is derived from the argument type.
///
/// The closure takes its arguments and the [`ToolContext`] by value and returns anything that converts to a
/// [`ToolOutput`]: a `String`, a `&str`, a [`serde_json::Value`], `()`, or [`Json`](crate::Json) of a serialisable
/// type. The schema has to keep to the checked subset. Structs, `Option`, `Vec`, numbers, strings, booleans and plain
/// enums do; maps, tuples and enums with fields do not and are refused when the tool is registered. All calls share
/// the one closure. Where the schema says integer, `1e3` and `1000.0` are 1000, as they are to JSON Schema;
/// beyond 2^53, where such a spelling may stand for several numbers, it is `invalid_input`.
///
/// # Examples
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City { name: String }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let weather = tool_fn(ToolSpec::read("weather"), |city: City, _: ToolContext| async move {
///     Ok(format!("sunny in {}", city.name))
/// });
/// let engine = Engine::builder().tool(weather).build().await.unwrap();
/// let call = Call::new("call_1", "weather", r#"{"name": "Oslo"}"#);
/// assert_eq!(engine.session("demo").call(call).await.to_text(), "sunny in Oslo");
/// # }
/// ```
pub fn tool_fn<A, R, F, Fut>(spec: ToolSpec, call: F) -> impl ToolFactory + use<A, R, F, Fut>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: TryInto<ToolOutput> + 'static,
    R::Error: Into<ToolError>,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let mut spec = spec;
    spec.input_schema.get_or_insert_with(schema_of::<A>);
    let schema = spec.schema();
    FnFactory { spec, tool: Arc::new(FnTool { call, schema, types: PhantomData }) }
}

/// The schema of an argument type, with subschemas inlined, because the checked subset has no `$ref`.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(Subset);
    let schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    // The schema of `()` is null, but calls always send an object.
    if schema["type"] == "null" { json!({"type": "object"}) } else { schema }
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

struct FnFactory<T> {
    spec: ToolSpec,
    tool: Arc<T>,
}

impl<T: Tool + 'static> ToolFactory for FnFactory<T> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.tool.clone()
    }
}

/// `fn(A) -> R` is `Send` and `Sync` whatever the types are, and none of them is stored.
struct FnTool<A, R, F> {
    call: F,
    schema: Value,
    types: PhantomData<fn(A) -> R>,
}

#[async_trait]
impl<A, R, F, Fut> Tool for FnTool<A, R, F>
where
    A: DeserializeOwned + Send + 'static,
    R: TryInto<ToolOutput> + 'static,
    R::Error: Into<ToolError>,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args =
            read_args(args, &self.schema).map_err(|error| ToolError::invalid_input(error.to_string()))?;
        (self.call)(args, cx.clone()).await.and_then(|output| output.try_into().map_err(Into::into))
    }
}

fn read_args<A: DeserializeOwned + 'static>(args: &Value, schema: &Value) -> Result<A, serde_json::Error> {
    // Calls always send an object, but `()` deserializes only from null.
    if TypeId::of::<A>() == TypeId::of::<()>() {
        return A::deserialize(Value::Null);
    }
    A::deserialize(args).or_else(|error| match integers::rewritten(args, schema) {
        Some(args) => A::deserialize(args),
        None => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::schema::Schema;
    use serde::Deserialize;
    use std::num::NonZeroUsize;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Args {
        /// How much.
        unit: Option<Unit>,
        units: Vec<Unit>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Unit {
        /// Degrees of most of the world.
        Celsius,
        /// Degrees of some of it.
        Fahrenheit,
        Kelvin,
    }

    /// V1: what the schema takes for an integer, a typed tool does too; the error for anything else is of what was sent.
    #[test]
    fn an_integer_is_one_however_it_is_written() {
        #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
        struct Page {
            first: u64,
            last: Option<i32>,
            sizes: Vec<NonZeroUsize>,
            share: f32,
        }
        let schema = schema_of::<Page>();
        let read = |text: &str| {
            let args = serde_json::from_str(text).unwrap();
            assert_eq!(Schema::compile(&schema).unwrap().validate(&args), Ok(()));
            read_args::<Page>(&args, &schema)
        };
        let page = read(r#"{"first": 1e3, "last": -2.0, "sizes": [3.0, 4], "share": 1.0}"#).unwrap();
        let sizes = [3, 4].map(|size| NonZeroUsize::new(size).unwrap()).to_vec();
        assert_eq!(page, Page { first: 1000, last: Some(-2), sizes, share: 1.0 });
        let error = read(r#"{"first": 1e16, "sizes": [], "share": 1}"#).unwrap_err();
        assert!(error.to_string().contains("floating point `1e+16`"), "{error}");
    }

    #[test]
    fn an_enum_with_described_variants_keeps_to_the_subset() {
        let schema = schema_of::<Args>();
        let unit = &schema["properties"]["units"]["items"];
        let mut names: Vec<_> = unit["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["celsius", "fahrenheit", "kelvin"]);
        assert!(unit["description"].as_str().unwrap().contains("\"celsius\": Degrees of most of the world."));
        let compiled = Schema::compile(&schema).unwrap();
        assert!(compiled.validate(&json!({"units": ["kelvin"]})).is_ok());
        assert!(compiled.validate(&json!({"units": [], "unit": "celsius"})).is_ok());
        assert!(compiled.validate(&json!({"units": [], "unit": null})).is_ok());
        assert!(compiled.validate(&json!({"units": [], "unit": "rankine"})).is_err());
        assert!(compiled.validate(&json!({"units": ["rankine"]})).is_err());
    }
}
