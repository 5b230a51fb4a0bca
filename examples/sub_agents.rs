//! A tree of agents: a tool forks sub-agents, each of which calls tools itself. They read side by side from one pool
//! and write one at a time under one serial lease, and no handler holds a permit while it waits for its agents.
//!
//! ```text
//!   root ─ survey ─┬─ root/1 ─ read, read, write
//!                  ├─ root/2 ─ survey ─┬─ root/2/4 ─ read, read, write
//!                  │                   └─ root/2/5 ─ read, read, write
//!                  └─ root/3 ─ read, read, write
//!   root ─ write                      its run starts when the whole survey is quiescent
//! ```
//!
//! The output shows: never more than three reads at once, over all agents; never two writes; an agent's write after its
//! own reads; deeper agents before shallower ones, so that work in progress is finished first.

use futures::future::join_all;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard::{
    Call, Confirmations, Drain, Engine, ForkPolicy, PoolWidths, Session, SubAgents, ToolContext, ToolError,
    ToolSpec, tool_fn,
};
use toolyard_examples::bar;

/// The record of what happened. Tools get it from their context.
struct Diary {
    began: Instant,
    lines: Mutex<Vec<Line>>,
}

struct Line {
    who: String,
    what: String,
    from: f64,
    to: f64,
}

impl Diary {
    /// Does something that takes time, and notes who did it and when.
    async fn work(&self, cx: &ToolContext, subject: &str, millis: u64) {
        let from = self.began.elapsed().as_secs_f64();
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let (who, what) = (cx.agent().to_string(), format!("{} {subject}", cx.tool()));
        let line = Line { who, what, from, to: self.began.elapsed().as_secs_f64() };
        self.lines.lock().push(line);
    }

    fn print(&self) {
        let mut lines = self.lines.lock();
        lines.sort_by(|a, b| a.from.total_cmp(&b.from));
        let whole = lines.iter().map(|line| line.to).fold(0.0, f64::max);
        println!("who did what when, in {:.0} ms:", whole * 1e3);
        for Line { who, what, from, to } in lines.iter() {
            println!("  {who:<9} {what:<19} |{}|", bar(*from, *to, whole, 50));
        }
        println!("the writes, one at a time, in this order:");
        for (at, line) in lines.iter().filter(|line| line.what.starts_with("write")).enumerate() {
            println!("  {}. {} by {}", at + 1, line.what, line.who);
        }
    }
}

fn diary(cx: &ToolContext) -> Result<&Arc<Diary>, ToolError> {
    cx.resource().ok_or_else(|| ToolError::execution("the engine has no diary"))
}

// The arguments of `read` and `write`.
#[derive(Deserialize, JsonSchema)]
struct About {
    subject: String,
}

// The arguments of `survey`. An agent whose topic has parts surveys those in turn.
#[derive(Deserialize, JsonSchema)]
struct Survey {
    /// One topic per agent.
    topics: Vec<String>,
}

fn call(id: String, tool: &'static str, subject: &str) -> Call {
    Call::new(id, tool, json!({"subject": subject}))
}

/// Stands in for a model: the calls that an agent makes to look into a topic.
fn calls_for(topic: &str) -> Vec<Call> {
    match topic {
        "fish" => vec![Call::new("fish", "survey", json!({"topics": ["salmon", "trout"]}))],
        _ => vec![
            call(format!("{topic} a"), "read", &format!("{topic}, part 1")),
            call(format!("{topic} b"), "read", &format!("{topic}, part 2")),
            call(format!("{topic} c"), "write", topic),
        ],
    }
}

/// One agent's work. While it awaits the dispatch, the handler that forked the agent is parked: it holds no permit, so
/// a tree of any depth gets through pools of any width.
async fn look_into(agent: Session, topic: &str) -> bool {
    agent.dispatch(calls_for(topic)).await.iter().all(|outcome| outcome.success())
}

fn survey() -> ToolSpec {
    ToolSpec::read("survey").describe("Assigns each topic to its own agent").recursive()
}

async fn surveyed(survey: Survey, cx: ToolContext) -> Result<String, ToolError> {
    let mut agents = Vec::new();
    for topic in &survey.topics {
        let agent = cx.fork(ForkPolicy::default())?; // the same tools and policy; it could get fewer tools
        agents.push(look_into(agent, topic));
    }
    let done = join_all(agents).await.into_iter().filter(|done| *done).count();
    Ok(format!("{done} of {} topics looked into", survey.topics.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Arc::new(Diary { began: Instant::now(), lines: Mutex::default() });
    let engine = Engine::builder()
        .tool(tool_fn(survey(), surveyed))
        .tool(tool_fn(ToolSpec::read("read"), |about: About, cx: ToolContext| async move {
            diary(&cx)?.work(&cx, &about.subject, 60).await;
            Ok("some text")
        }))
        .tool(tool_fn(ToolSpec::write("write"), |about: About, cx: ToolContext| async move {
            diary(&cx)?.work(&cx, &about.subject, 40).await;
            Ok("written")
        }))
        .resource(notes.clone())
        .pools(PoolWidths::new(3, 1)) // three reads at once in the engine; one survey per agent
        .confirmations(Confirmations::auto()) // nobody is asked in this example
        .build()
        .await?;
    let session = engine.session("demo");
    let topics = json!({"topics": ["birds", "fish", "trees"]});
    let batch = vec![Call::new("all", "survey", topics), call("end".to_owned(), "write", "the summary")];
    let outcomes = session.dispatch(batch).await;
    println!("what the model of the first agent reads:");
    toolyard_examples::print(&outcomes);
    notes.print();
    engine.shutdown(Drain::default()).await;
    Ok(())
}
