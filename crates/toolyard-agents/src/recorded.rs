//! What agents were answered in earlier lives of their supervisor (CL-8).

use std::fmt;
use toolyard::{AgentPath, Call, Outcome};

/// What is recorded of the calls of agents that are started again under their names.
pub trait Recorded: Send + Sync + fmt::Debug {
    /// The result of a call that this agent has made before, with the same id, tool and arguments, and that was started; of
    /// several the first that has not been given yet or, if that was cut off and has run again since, the one that has.
    /// `None` runs the call.
    ///
    /// It is asked on the task of the agent's conversation: it may read a file, and nothing that takes longer.
    fn answer(&self, agent: &AgentPath, call: &Call) -> Option<Outcome>;
}
