//! The shortest start: a tool from a typed async closure, a session, one batch, results in call order.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard::{BuildError, Call, Drain, Engine, ToolContext, ToolSpec, tool_fn};

// The arguments. The schema that the model sees and that calls are checked against is derived from this type.
#[derive(Deserialize, JsonSchema)]
struct City {
    /// The city's name.
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), BuildError> {
    let spec = ToolSpec::read("weather").describe("The weather of a city");
    let weather = tool_fn(spec, |city: City, _: ToolContext| async move {
        Ok(format!("{} °C in {}", 10 + city.name.len(), city.name))
    });
    let engine = Engine::builder().tool(weather).build().await?;

    // A model's answer. The arguments are still text: call_3 is not valid JSON, and call_4 does not fit the schema.
    let batch = vec![
        Call::new("call_1", "weather", r#"{"name": "Oslo"}"#),
        Call::new("call_2", "weather", r#"{"name": "Reykjavik"}"#),
        Call::new("call_3", "weather", r#"{"name": "#),
        Call::new("call_4", "weather", r#"{"town": "Bergen"}"#),
    ];
    println!("four calls, four results, in call order:");
    toolyard_examples::print(&engine.session("demo").dispatch(batch).await);
    engine.shutdown(Drain::default()).await;
    Ok(())
}
