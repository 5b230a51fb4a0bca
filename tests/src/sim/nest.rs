//! The engine's API for nested calls and sub-agents, as the simulation uses it. No other module names it.

use super::{
    Program,
    program::ForkPlan,
    stage::{Agent, capabilities, tools_except},
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
/// allow. Every other one has a name, by which its parent must find it, and which no second one gets (SM-8).
pub(super) fn fork(program: &Program, parent: Parent<'_>, plan: &ForkPlan) -> Option<Session> {
    let mut policy = ForkPolicy::default();
    if plan.shares_concurrent {
        policy = policy.share_concurrent();
    }
    if let Some(cap) = plan.cap {
        policy = policy.max_in_flight(cap);
    }
    if let Some(hidden) = plan.hidden {
        policy = policy.only_tools(tools_except(program, hidden));
    }
    if let Some(capabilities) = capabilities(program, &plan.barred) {
        policy = policy.capabilities(capabilities);
    }
    let name = format!("fork-{}", plan.number);
    let is_named = plan.number.is_multiple_of(2);
    let named = if is_named { policy.clone().name(name.as_str()) } else { policy.clone() };
    let fork = match (parent.fork(named.clone()), parent) {
        (Err(ForkError::CallEnded), _) => return None,
        // What the last attempt of this call forked may still be at work.
        (Err(ForkError::NameTaken), Parent::Handler(cx)) if cx.attempt() > 1 => {
            return parent.fork(policy).ok();
        }
        (fork, _) => fork.expect("programs fork within the limit, each under a name of its own"),
    };
    if is_named {
        assert_eq!(fork.agent().name(), name);
        let found = parent.sub_agent(&name).map(|found| found.agent().clone());
        assert_eq!(found.as_ref(), Some(fork.agent()), "a sub-agent is found by its name (SM-8)");
        assert_eq!(parent.fork(named).err(), Some(ForkError::NameTaken), "one name is two agents' (SM-8)");
    }
    Some(fork)
}

impl Parent<'_> {
    fn fork(self, policy: ForkPolicy) -> Result<Session, ForkError> {
        match self {
            Self::Handler(cx) => cx.fork(policy),
            Self::Agent(agent) => agent.session.fork(policy),
        }
    }

    fn sub_agent(self, name: &str) -> Option<Session> {
        match self {
            Self::Handler(cx) => cx.sub_agent(name),
            Self::Agent(agent) => agent.session.sub_agent(name),
        }
    }
}
