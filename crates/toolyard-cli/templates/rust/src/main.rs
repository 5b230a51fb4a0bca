//! An agent with three tools. `cargo run` runs one batch of calls and shows what the model would read; `cargo test` tests
//! the tools.

use serde_json::{Value, json};
use std::{collections::BTreeMap, error::Error, sync::Mutex};
use toolyard::{
    Answer, ApprovalRequest, Approver, Drain, Engine, EngineBuilder, ResultExt, Session, State, ToolError,
    async_trait, tool,
};
use toolyard_wire::{Format, build_tool_result_messages, decode};

/// What the tools share.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, String>>);

/// Counts the words of a text.
#[tool(pure)]
async fn count_words(
    /// The text. What stands here is what the model reads of this argument.
    text: String,
) -> String {
    text.split_whitespace().count().to_string()
}

/// Finds a note.
#[tool(read)]
async fn find_note(title: String, notes: State<Notes>) -> Result<String, ToolError> {
    let notes = notes.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    notes.get(&title).cloned().for_model(format!("there is no note '{title}': save it first"))
}

/// Saves a note.
#[tool(write)]
async fn save_note(title: String, text: String, notes: State<Notes>) -> String {
    notes.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(title, text);
    "saved".to_owned()
}

/// Answers for the person who would be asked: calls of `save_note` may run, and no others that change something.
struct Person;

#[async_trait]
impl Approver for Person {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        match request.tool().as_ref() {
            "save_note" => Answer::allow("this program"),
            _ => Answer::deny("this program"),
        }
    }
}

/// An engine with the tools, to which a test can add.
fn engine() -> EngineBuilder {
    Engine::builder().tool(count_words).tool(find_note).tool(save_note).resource(Notes::default())
}

/// Stands in for a model, which has a plan: three calls, then what they found. In its place comes a request to your
/// provider, with `toolyard_wire::definitions` of the tools in it; `decode` reads the answer of any of them.
async fn model(messages: &[Value]) -> Value {
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let message = match messages {
        [_task] => json!({"role": "assistant", "content": null, "tool_calls": [
            call("call_1", "save_note", json!({"title": "shopping", "text": "milk and tea"})),
            call("call_2", "find_note", json!({"title": "shopping"})),
            call("call_3", "count_words", json!({"text": "milk and tea"})),
        ]}),
        _ => json!({"role": "assistant", "content": "The note is saved."}),
    };
    json!({"choices": [{"message": message}]})
}

/// Runs an agent until its model makes no more calls, and returns the conversation with what it says at last.
async fn run_agent(session: &Session, task: &str) -> Result<(Vec<Value>, String), Box<dyn Error>> {
    const TURNS_MAX: usize = 20;
    let mut messages = vec![json!({"role": "user", "content": task})];
    for _ in 0..TURNS_MAX {
        let response = model(&messages).await;
        let message = decode(&response.to_string(), Some(Format::OpenAiChat))?;
        if message.calls().is_empty() {
            return Ok((messages, message.text()));
        }
        // The calls run here: reads beside each other, writes one at a time, each in the order that the model meant.
        let outcomes = session.dispatch(message.calls().to_vec()).await;
        messages.extend(build_tool_result_messages(&message, &outcomes, Format::OpenAiChat)?.into_messages());
    }
    Err(format!("the agent has not come to an end in {TURNS_MAX} turns").into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = engine().approver(Person).build().await?;
    let (messages, said) = run_agent(&engine.session("first"), "Note what to buy.").await?;
    for message in messages {
        println!("{message}");
    }
    println!("{said}");
    engine.shutdown(Drain::default()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{
        BuildError, Call,
        testing::{EventRecorder, ScriptedApprover},
    };

    #[tokio::test]
    async fn words_are_counted() {
        assert_eq!(count_words::call("milk and tea".to_owned()).await, "3");
    }

    /// In an engine, on paused time: a note can be found as soon as it is saved, because a write runs before what follows.
    #[tokio::test(start_paused = true)]
    async fn a_note_is_found_after_it_is_saved() -> Result<(), BuildError> {
        let (person, events) = (ScriptedApprover::new([Answer::allow("ada")]), EventRecorder::default());
        let engine = engine().approver(person.clone()).events(events.clone()).build().await?;
        let batch = vec![
            Call::new("save", "save_note", json!({"title": "shopping", "text": "milk"})),
            Call::new("find", "find_note", json!({"title": "shopping"})),
        ];
        let outcomes = engine.session("test").dispatch(batch).await;
        assert_eq!(outcomes[1].to_text(), "milk");
        assert_eq!(person.asked()[0].call_id().as_str(), "save");
        events.assert_ran_before("save", "find");
        events.check();
        Ok(())
    }
}
