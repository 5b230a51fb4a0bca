//! The engine's API for nested calls and sub-agents, as the simulation uses it. No other module names it.

use super::{
    Program,
    program::ForkPlan,
    stage::{Agent, capabilities, nonzero, tools_except},
};
use toolyard::{Call, ForkError, ForkPolicy, Outcome, Session, SubAgents, ToolContext};

/// Runs a batch from inside a handler.
pub(super) async fn dispatch(cx: &ToolContext, calls: Vec<Call>) -> Vec<Outcome> {
    cx.dispatch(calls).await
}

/// Who creates a sub-agent.
#[derive(Clone, Copy)]
pub(super) enum Parent<'a> {
    /// A handler, through its context.
    Handler(&'a ToolContext),
    /// An agent.
    Agent(Agent<'a>),
}

/// Creates a sub-agent; `None` if the call that it would belong to has ended. Programs fork less deeply than engines
/// allow.
pub(super) fn fork(program: &Program, parent: Parent<'_>, plan: &ForkPlan) -> Option<Session> {
    let mut policy = ForkPolicy::default();
    if plan.shares_concurrent {
        policy = policy.share_concurrent();
    }
    if let Some(cap) = plan.cap {
        policy = policy.max_in_flight(nonzero(cap));
    }
    if let Some(hidden) = plan.hidden {
        policy = policy.only_tools(tools_except(program, hidden));
    }
    if let Some(capabilities) = capabilities(program, &plan.barred) {
        policy = policy.capabilities(capabilities);
    }
    let fork = match parent {
        Parent::Handler(cx) => cx.fork(policy),
        Parent::Agent(agent) => agent.session.fork(policy),
    };
    match fork {
        Err(ForkError::CallEnded) => None,
        fork => Some(fork.expect("programs fork within the limit")),
    }
}
