//! Nothing runs unless it is allowed: an agent within its capabilities, a person who is asked, and a policy that
//! changes while a question is open.
//!
//! ```text
//! cargo run -p toolyard-examples --example ask_first
//! ```

use serde_json::{Value, json};
use toolyard::{
    Answer, ApprovalDesk, Call, Capabilities, Drain, Engine, ForkPolicy, Outcome, PolicyRules, Rule, Session,
    ToolContext, ToolSpec, tool_fn,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fetch = ToolSpec::read("fetch").describe("Fetches a page").requires_net("url");
    let post = ToolSpec::write("post").describe("Posts a text to a channel").approval_ignores("text");
    let desk = ApprovalDesk::default();
    let engine = Engine::builder()
        .tool(tool_fn(fetch, |args: Value, _: ToolContext| async move {
            Ok(format!("<page of {}>", args["url"]))
        }))
        .tool(tool_fn(post, |args: Value, _: ToolContext| async move {
            Ok(format!("posted to {}", args["channel"]))
        }))
        .approver(desk.clone())
        .build()
        .await?;
    let session = engine.session("newsroom");

    println!("within its capabilities");
    let near = Capabilities::default().net(["*.example.com".parse()?]);
    let reader = session.fork(ForkPolicy::default().capabilities(near))?;
    let urls = ["https://news.example.com/today", "http://0x7f.1/admin"];
    let batch: Vec<Call> =
        urls.iter().zip(1..).map(|(url, at)| call(at, "fetch", json!({"url": url}))).collect();
    reader.dispatch(batch).await.iter().for_each(print);

    println!("a person is asked, once for the whole channel");
    let batch = vec![
        call(1, "post", json!({"channel": "sports", "text": "It has begun"})),
        call(2, "post", json!({"channel": "politics", "text": "It has ended"})),
        call(3, "post", json!({"channel": "sports", "text": "It goes on"})),
    ];
    let outcomes = tokio::select! {
        outcomes = session.dispatch(batch) => outcomes,
        () = editor(&desk) => unreachable!("the engine still asks"),
    };
    outcomes.iter().for_each(print);

    println!("the policy changes while a question is open");
    let (outcome, ()) = tokio::join!(ask_for_weather(&session), async {
        let question = desk.next().await.expect("the engine still asks");
        engine.set_policy(PolicyRules::new(Rule::allow()).tool("post", Rule::Deny));
        println!("  (question {} is withdrawn)", question.id());
    });
    print(&outcome);

    engine.shutdown(Drain::default()).await;
    Ok(())
}

/// Answers yes to sports, for good, and no to everything else, until the engine asks no more.
async fn editor(desk: &ApprovalDesk) {
    while let Some(question) = desk.next().await {
        let answer = if question.arguments()["channel"] == "sports" {
            Answer::always("ada")
        } else {
            Answer::deny("ada")
        };
        println!("  may it {}? {answer:?}", question.pattern());
        // The answer is for exactly what was asked: tool, arguments, session, policy. If an answer for the same pattern
        // has settled the question meanwhile, it no longer exists.
        if let Err(error) = desk.answer(question.id(), question.digest(), answer).await {
            println!("  {error}");
        }
    }
}

async fn ask_for_weather(session: &Session) -> Outcome {
    session.call(call(1, "post", json!({"channel": "weather", "text": "Rain"}))).await
}

fn call(number: u32, tool: &str, args: Value) -> Call {
    Call::new(format!("call_{number}"), tool, args)
}

fn print(outcome: &Outcome) {
    let text = outcome
        .error()
        .map_or_else(|| outcome.to_text(), |error| format!("{}: {}", error.kind, error.message));
    println!("  {} {}", outcome.call_id, text);
}
