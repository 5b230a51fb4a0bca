//! Who knows which tool tells what became of the calls of another one (JR-6).

use serde_json::Value;
use toolyard_core::{Call, Outcome, Reconciled};

/// Finds out by a call of a tool that only reads what became of a call whose own tool does not know: a service's tool that
/// sends, and another one that lists what was sent.
///
/// # Examples
/// ```
/// use serde_json::{Value, json};
/// use toolyard::{Call, Outcome, Reconciled, Reconciler, ToolOutput};
///
/// struct BySent;
///
/// impl Reconciler for BySent {
///     fn question(&self, tool: &str, _: &Value, key: Option<&str>) -> Option<Call> {
///         let key = key.filter(|_| tool == "send")?;
///         Some(Call::new("was_it_sent", "find_sent", json!({"reference": key})))
///     }
///     fn reading(&self, _: &str, outcome: &Outcome) -> Reconciled {
///         match outcome.success() {
///             true => Reconciled::Done(ToolOutput::text("it was sent")),
///             false => Reconciled::Unknown,
///         }
///     }
/// }
/// ```
pub trait Reconciler: Send + Sync {
    /// The call that tells what became of one of this tool, with these arguments and this key; `None` if none does. It passes
    /// the gate like any other call of the agent, must be of a tool that only reads, and has 30 s.
    fn question(&self, tool: &str, args: &Value, key: Option<&str>) -> Option<Call>;

    /// What its result says of the call.
    fn reading(&self, tool: &str, outcome: &Outcome) -> Reconciled;
}
