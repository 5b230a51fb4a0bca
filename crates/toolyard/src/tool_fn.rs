//! A tool from a typed async closure.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{any::TypeId, future::Future, marker::PhantomData, sync::Arc};
use toolyard_core::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// A tool from a typed async closure. Where the spec names no schema it comes from the argument type.
///
/// The closure takes its arguments and the [`ToolContext`] by value and gives anything that turns into a
/// [`ToolOutput`]: a `String`, a `&str`, a [`serde_json::Value`], `()`, [`Json`](crate::Json) of a
/// serialisable type. Its schema has to keep to the checked subset: structs, `Option`, `Vec`, numbers,
/// strings, booleans and plain enums do; maps and enums with fields do not and are refused when the tool is
/// registered. The closure keeps no state of its own between calls, so all calls share it.
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
    FnFactory { spec, tool: Arc::new(FnTool { call, types: PhantomData }) }
}

/// The schema of an argument type, with everything in place: the checked subset has no `$ref`.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    // No arguments at all: `()` reads as null, and calls always send an object.
    if schema["type"] == "null" { json!({"type": "object"}) } else { schema }
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

/// `fn(A) -> R` is `Send` and `Sync` whatever the types are: none of them is kept.
struct FnTool<A, R, F> {
    call: F,
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
        let args = read_args(args).map_err(|error| ToolError::invalid_input(error.to_string()))?;
        (self.call)(args, cx.clone()).await.and_then(|output| output.try_into().map_err(Into::into))
    }
}

fn read_args<A: DeserializeOwned + 'static>(args: &Value) -> Result<A, serde_json::Error> {
    // Calls always send an object, and `()` reads itself from null alone.
    if TypeId::of::<A>() == TypeId::of::<()>() {
        return A::deserialize(Value::Null);
    }
    A::deserialize(args)
}
