//! What functions and methods with the attributes are as tools (KT-2, KT-3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolyard::{
    Args, Call, Confirmations, Engine, ErrorKind, Json, Outcome, ResultExt, SideEffects, State, ToolContext,
    ToolError, ToolFactory, Toolset, tool, tools,
};

struct Notes(Vec<&'static str>);

/// Finds notes.
///
/// The newest comes first.
#[tool(read, name = "find_notes", timeout = "250ms", max_concurrency = 3, rate = "5/s", idempotent)]
async fn find(
    /// A word in them.
    word: String,
    /// How many at most.
    #[serde(default = "ten", rename = "limit")]
    most: usize,
    notes: State<Notes>,
    cx: &ToolContext,
) -> Json<Found> {
    let titles = notes.0.iter().filter(|note| note.contains(&word)).take(most);
    Json(Found { titles: titles.map(|title| (*title).to_owned()).collect(), of: cx.tool().to_owned() })
}

fn ten() -> usize {
    10
}

#[derive(Serialize)]
struct Found {
    titles: Vec<String>,
    of: String,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    r#type: Kind,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Tea { grams: u32 },
    Water,
}

/// Orders something.
#[tool(write, concurrent)]
async fn order(Args(order): Args<Order>) -> Result<String, ToolError> {
    match order.r#type {
        Kind::Tea { grams } => Ok(format!("{} g of tea", stored(grams)?)),
        Kind::Water => None.for_model("there is no water left"),
    }
}

fn stored(grams: u32) -> anyhow::Result<u32> {
    anyhow::ensure!(grams > 0, "table orders has no row 0");
    Ok(grams)
}

/// Reserves something.
#[tool(write)]
async fn reserve(grams: u32) -> anyhow::Result<String> {
    Ok(stored(grams)?.to_string())
}

#[tool(pure, description = "Says hello")]
async fn r#final() -> &'static str {
    "hello"
}

async fn call(engine: &Engine, tool: &str, args: Value) -> Outcome {
    engine.session("s").call(Call::new("c", tool, args)).await
}

/// KT-2: the name, the doc comment, the settings and the parameters make the spec.
#[test]
fn a_function_says_what_its_tool_is() {
    let spec = find().spec();
    assert_eq!((spec.name.as_str(), spec.side_effects), ("find_notes", SideEffects::Read));
    assert_eq!(spec.description, "Finds notes.\n\nThe newest comes first.");
    assert_eq!(spec.attempt_timeout(), Duration::from_millis(250));
    assert_eq!(spec.settings.max_concurrency.map(|most| most.get()), Some(3));
    assert!(spec.settings.rate.is_some() && spec.settings.idempotent == Some(true));
    let schema = spec.schema();
    assert_eq!(schema["properties"]["word"], json!({"type": "string", "description": "A word in them."}));
    assert_eq!(
        (&schema["properties"]["limit"]["default"], &schema["required"]),
        (&json!(10), &json!(["word"]))
    );
    let spec = r#final().spec();
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("final", "Says hello"));
    assert_eq!(order().spec().settings.concurrent, Some(true));
}

/// KT-2, KT-3: arguments, resources and the context reach the function; what it returns is the output.
#[tokio::test]
async fn a_call_reaches_its_function() {
    let builder =
        Engine::builder().tool(find).tool(order).tool(r#final).resource(Notes(vec!["tea", "teapot", "cup"]));
    let engine = builder.confirmations(Confirmations::auto()).build().await.unwrap();
    let found = call(&engine, "find_notes", json!({"word": "tea", "limit": 1})).await;
    assert_eq!(*found.status.unwrap().structured().unwrap(), json!({"titles": ["tea"], "of": "find_notes"}));
    assert_eq!(call(&engine, "order", json!({"type": {"tea": {"grams": 3}}})).await.to_text(), "3 g of tea");
    assert_eq!(call(&engine, "final", json!({})).await.to_text(), "hello");
    let refused = call(&engine, "order", json!({"type": {"tea": {"grams": "many"}}})).await;
    assert_eq!(refused.error().unwrap().kind, ErrorKind::InvalidInput);
}

/// KT-3: an error of another crate is not shown to the model; one with words for it is, through whatever it passed.
#[tokio::test]
async fn errors_say_what_the_model_reads() {
    let builder = Engine::builder().tool(order).tool(reserve).confirmations(Confirmations::auto());
    let engine = builder.build().await.unwrap();
    for (tool, args) in [("order", json!({"type": {"tea": {"grams": 0}}})), ("reserve", json!({"grams": 0}))]
    {
        let hidden = call(&engine, tool, args).await;
        let hidden = hidden.error().unwrap();
        assert!(hidden.kind == ErrorKind::ExecutionError && !hidden.message.contains("row 0"), "{hidden}");
    }
    let shown = call(&engine, "order", json!({"type": "water"})).await;
    assert_eq!(shown.error().unwrap().message, "there is no water left");
}

/// KT-2: a resource that nobody has given ends the call and no other.
#[tokio::test]
async fn a_resource_that_is_missing_is_an_error() {
    let engine = Engine::builder().tool(find).tool(r#final).build().await.unwrap();
    let outcome = call(&engine, "find_notes", json!({"word": "tea"})).await;
    assert!(outcome.error().is_some());
    assert!(call(&engine, "final", json!({})).await.success());
}

/// KT-2: the function is there without an engine.
#[tokio::test]
async fn a_function_is_tested_as_one() {
    assert_eq!(order::call(Args(Order { r#type: Kind::Tea { grams: 2 } })).await.unwrap(), "2 g of tea");
    assert_eq!(r#final::call().await, "hello");
}

#[derive(Default)]
struct Counter(parking_lot::Mutex<i64>);

#[tools]
impl Counter {
    /// Adds, and returns the sum.
    #[tool(write)]
    async fn add(&self, amount: i64, cx: ToolContext) -> Result<String, ToolError> {
        (!cx.is_cancelled()).then_some(()).for_model("stopped")?;
        *self.0.lock() += amount;
        Ok(self.sum().to_string())
    }

    fn sum(&self) -> i64 {
        *self.0.lock()
    }
}

/// KT-2: methods share the value they are methods of, with each other and with whoever else has it.
#[tokio::test]
async fn methods_share_their_value() {
    let counter = Arc::new(Counter::default());
    let builder =
        Engine::builder().tools(counter.clone().into_toolset()).confirmations(Confirmations::auto());
    let engine = builder.build().await.unwrap();
    assert_eq!(call(&engine, "add", json!({"amount": 2})).await.to_text(), "2");
    assert_eq!(call(&engine, "add", json!({"amount": 3})).await.to_text(), "5");
    assert_eq!(counter.sum(), 5);
    assert_eq!(Toolset::from(Counter::default()).tools.len(), 1);
}
