//! A tool from a typed async closure.

mod derived;
mod integers;

use super::bounds::{Argument, IntoOutput};
use derived::schema_of;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{any::TypeId, future::Future, marker::PhantomData, sync::Arc};
use toolyard_core::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// Makes a tool of a typed async closure. If the spec has no schema, it is derived from the argument type.
///
/// The closure takes its arguments and the [`ToolContext`] by value and returns anything that converts to a
/// [`ToolOutput`]: a `String`, a `&str`, a [`serde_json::Value`], `()`, or [`Json`](crate::Json) of a serialisable
/// type. All calls share the one closure.
///
/// The argument type is anything that serde reads from an object: nested types, maps, tuples and enums with data may be
/// in its fields, and `#[serde(…)]` counts (KT-1). The arguments as a whole are a struct or a map, because no provider
/// sends anything else; a list or an enum is refused when the tool is registered, with what to write instead. Where the schema says integer, `1e3` and `1000.0` are 1000, as they are to JSON Schema;
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
    A: Argument,
    R: IntoOutput,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let spec = match spec.input_schema {
        None => spec.typed_schema(schema_of::<A>()),
        Some(_) => spec,
    };
    let schema = spec.schema();
    FnFactory { spec, tool: Arc::new(FnTool { call, schema, types: PhantomData }) }
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
    R: IntoOutput,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args =
            read_args(args, &self.schema).map_err(|error| ToolError::invalid_input(error.to_string()))?;
        (self.call)(args, cx.clone()).await.and_then(R::into_output)
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
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use std::{collections::BTreeMap, num::NonZeroUsize};

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

    /// KT-1: what serde reads is an argument: maps, tuples, enums with data, nested and recursive types. What is refused
    /// is refused at its place, and integers are integers there too.
    #[test]
    fn arguments_are_what_serde_takes() {
        #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        struct Order {
            amounts: BTreeMap<String, u32>,
            corner: (i32, i32),
            how: How,
            within: Option<Box<Order>>,
        }
        #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(tag = "by", rename_all = "snake_case")]
        enum How {
            Post { address: String },
            Hand,
        }
        let schema = schema_of::<Order>();
        let compiled = Schema::compile_typed(&schema).unwrap();
        let read = |args: &Value| read_args::<Order>(args, &schema).map_err(|error| error.to_string());
        let inner = json!({"amounts": {}, "corner": [0, 0], "how": {"by": "post", "address": "x"}});
        let args =
            json!({"amounts": {"tea": 3.0}, "corner": [1, -2.0], "how": {"by": "hand"}, "within": inner});
        assert_eq!(compiled.validate(&args), Ok(()));
        let order = read(&args).unwrap();
        assert_eq!((order.amounts["tea"], order.corner, &order.how), (3, (1, -2), &How::Hand));
        assert_eq!(order.within.unwrap().how, How::Post { address: "x".into() });
        let misfit = |change: &dyn Fn(&mut Value)| {
            let mut args = args.clone();
            change(&mut args);
            compiled.validate(&args).unwrap_err()[0].pointer.clone()
        };
        assert_eq!(misfit(&|args| args["amounts"]["tea"] = json!("much")), "/amounts/tea");
        assert_eq!(misfit(&|args| args["corner"] = json!([1])), "/corner");
        assert_eq!(misfit(&|args| args["within"]["corner"] = json!("left")), "/within");
    }

    /// KT-1: arguments that are no object are refused when the tool is registered, and the error says what to write.
    #[test]
    fn arguments_as_a_whole_are_an_object() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        enum Either {
            One { n: u32 },
            Other { text: String },
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Flat {
            n: u32,
            #[serde(flatten)]
            either: Either,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Renamed(#[expect(dead_code, reason = "only its schema is looked at")] Either);
        #[derive(Deserialize, JsonSchema)]
        struct Sizes(#[expect(dead_code, reason = "only its schema is looked at")] Sized);
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Sized {
            sizes: BTreeMap<String, u32>,
        }
        let refused = |schema: Value| Schema::compile_typed(&schema).unwrap_err().to_string();
        for (schema, what) in [
            (schema_of::<Vec<u32>>(), "a list"),
            (schema_of::<String>(), "a single value"),
            (schema_of::<Unit>(), "a plain enum"),
            (schema_of::<Either>(), "an enum"),
            (schema_of::<Renamed>(), "an enum"),
            (schema_of::<Option<BTreeMap<String, u32>>>(), "an option"),
            (schema_of::<Flat>(), "a struct that flattens an enum"),
        ] {
            assert!(refused(schema).starts_with(&format!("the arguments are {what}, and")), "{what}");
        }
        assert!(Schema::compile_typed(&schema_of::<BTreeMap<String, u32>>()).is_ok());
        assert_eq!(schema_of::<Sizes>()["type"], "object");
        assert!(Schema::compile_typed(&schema_of::<()>()).is_ok());
        assert!(Schema::compile_typed(&schema_of::<Value>()).is_ok());
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
