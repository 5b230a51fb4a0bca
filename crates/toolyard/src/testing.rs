//! What helps to test tools, and the programs that call them: tools and people that answer as they are told, and a recorder
//! of events that checks what happened (KT-6). With the feature `testing`, for dev-dependencies.
//!
//! ```text
//!   ScriptedTool      answers, fails, waits, panics: attempt by attempt; remembers what it was called with
//!   ScriptedApprover  answers question by question, or never; remembers what it was asked
//!   EventRecorder     remembers every event: order, overlap, one end per call, the grammar of the whole log
//! ```
//!
//! Time is tokio's clock: in a test with `start_paused = true` (tokio's feature `test-util`), nothing here takes any, and
//! the engine's waits do not either. For what must be durable there is [`MemoryRecorder`](crate::MemoryRecorder).
//!
//! # Examples
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::time::Duration;
//! use toolyard::testing::{EventRecorder, Reply, ScriptedApprover, ScriptedTool};
//! use toolyard::{Answer, Call, Engine, ToolError, ToolSpec};
//! # tokio::time::pause();
//! let save = ScriptedTool::new(ToolSpec::write("save"))
//!     .then(Reply::error(ToolError::execution("the disk is full")))
//!     .then(Reply::text("saved").after(Duration::from_secs(1)));
//! let (person, events) = (ScriptedApprover::new([Answer::allow("ada")]), EventRecorder::default());
//! let builder = Engine::builder().tool(save.clone()).approver(person.clone()).events(events.clone());
//! let engine = builder.build().await.unwrap();
//! let session = engine.session("test");
//!
//! let outcomes = session.dispatch(["a", "b"].map(|id| Call::new(id, "save", "{}")).to_vec()).await;
//! assert!(outcomes[0].error().is_some());
//! assert_eq!(outcomes[1].to_text(), "saved");
//! assert_eq!((save.seen().len(), person.asked().len()), (2, 2));
//! events.assert_ran_before("a", "b");
//! events.check();
//! # }
//! ```

mod approver;
mod events;
mod scripted;

pub use approver::ScriptedApprover;
pub use events::{EventRecorder, event_faults};
pub use scripted::{Reply, ScriptedTool, Seen};

#[cfg(test)]
mod tests;
