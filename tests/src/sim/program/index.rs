//! An index over a program: where each call is and how it is routed.

use super::{
    BatchPlan, CallPlan, Consent, DispatchMode, End, ForkPlan, HookPlan, Program, Step, ToolPlan, TurnPlan,
};
use crate::sim::check::Earlier;
use std::collections::BTreeMap;
use toolyard::{CallId, Routing, ToolClass};

/// An index over a program. A batch is identified by the number of its first call.
#[derive(Debug)]
pub struct Index<'p> {
    /// The program.
    pub program: &'p Program,
    /// Its calls, by number.
    pub nodes: BTreeMap<u32, Node<'p>>,
    /// Its non-empty batches.
    pub batches: BTreeMap<u32, Placed<'p>>,
    /// Its agents, root sessions first.
    pub agents: Vec<Agent>,
    /// Its calls that could run, grouped by what makes at most one of them run at a time.
    groups: BTreeMap<Group, Vec<u32>>,
    /// How the gate answered calls, for reasons that only the run decides.
    at_gate: BTreeMap<u32, AtGate>,
    /// What earlier lives of the engine have done for its calls.
    pub earlier: Earlier,
}

/// How the gate answered a call for a reason that only the run decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtGate {
    /// It was refused.
    Refused,
    /// Its breaker was open.
    BreakerOpen,
}

/// Identifies calls of which at most one runs at a time (ID-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A call without a key, which has a group to itself.
    Alone(u32),
    /// Root session, tool and key.
    Keyed(usize, usize, u32),
}

/// A call and its position.
#[derive(Debug, Clone, Copy)]
pub struct Node<'p> {
    /// The call.
    pub call: &'p CallPlan,
    /// Its tool, if that exists and is visible to the agent.
    pub tool: Option<&'p ToolPlan>,
    /// Its batch.
    pub batch: u32,
    /// Its index in the batch.
    pub at: usize,
    /// The index of its run in the batch.
    pub run: usize,
    /// Its routing.
    pub routing: Routing,
    /// The agent that makes it.
    pub agent: usize,
    /// The call whose handler makes it, if any.
    pub parent: Option<u32>,
}

/// A batch and its position.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'p> {
    /// The batch.
    pub plan: &'p BatchPlan,
    /// The turn or handler that dispatches it.
    pub owner: Owner<'p>,
    /// The agent that runs it.
    pub agent: usize,
    /// The call whose handler dispatches it, if any.
    pub parent: Option<u32>,
}

/// The turn or handler that dispatches a batch.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'p> {
    /// A turn.
    Turn(&'p TurnPlan),
    /// A handler, through its context.
    Handler {
        /// Drops the batch's future after so many milliseconds.
        dropped_ms: Option<u64>,
    },
}

/// An agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The root session at the top of its tree.
    pub root: usize,
    /// The agent it was forked from.
    pub parent: Option<usize>,
    /// The most calls of it that run at once.
    pub cap: Option<usize>,
    /// The agent whose concurrent pool it uses.
    pub concurrent_of: usize,
    /// The number of its fork; `None` for a root session.
    pub fork: Option<u32>,
    /// The tools hidden from it.
    pub hidden: Vec<usize>,
    /// The tools it has no capability for.
    pub barred: Vec<usize>,
    /// Those that it and each agent above it are barred from by themselves, in any order.
    pub bars: Vec<Vec<usize>>,
    /// Whether the call whose handler made it, or an agent above it, has ended before it is used.
    pub late: bool,
}

impl<'p> Index<'p> {
    /// Indexes a program. `at_gate` says how the gate answered calls for reasons that only the run decides: the policy
    /// in force, remembered answers, and breakers.
    pub fn new(program: &'p Program, at_gate: BTreeMap<u32, AtGate>) -> Self {
        let mut index = Self {
            program,
            nodes: BTreeMap::new(),
            batches: BTreeMap::new(),
            agents: Vec::new(),
            groups: BTreeMap::new(),
            at_gate,
            earlier: Earlier::default(),
        };
        for (root, session) in program.sessions.iter().enumerate() {
            let cap = session.cap.or(program.cap);
            let (fork, hidden, barred) = (None, Vec::new(), session.barred.clone());
            let bars = vec![session.barred.clone()];
            index.agents.push(Agent {
                root,
                parent: None,
                cap,
                concurrent_of: root,
                fork,
                hidden,
                barred,
                bars,
                late: false,
            });
        }
        for (agent, session) in program.sessions.iter().enumerate() {
            session.turns.iter().for_each(|turn| index.turn(turn, agent, None));
            session.forks.iter().for_each(|fork| index.fork(fork, agent, None));
        }
        let able: Vec<_> =
            index.nodes.values().filter(|node| node.class().is_some()).map(|it| it.call.node).collect();
        for node in able {
            let group = index.group_of(node);
            index.groups.entry(group).or_default().push(node);
        }
        index
    }

    /// The same after these earlier lives of the engine.
    #[must_use]
    pub fn after(mut self, earlier: Earlier) -> Self {
        self.earlier = earlier;
        self
    }

    fn turn(&mut self, turn: &'p TurnPlan, agent: usize, parent: Option<u32>) {
        self.place(&turn.batch, Owner::Turn(turn), agent, parent);
    }

    fn place(&mut self, plan: &'p BatchPlan, owner: Owner<'p>, agent: usize, parent: Option<u32>) {
        let Some(batch) = plan.key() else { return };
        self.batches.insert(batch, Placed { plan, owner, agent, parent });
        let one_by_one = matches!(owner, Owner::Turn(TurnPlan { mode: DispatchMode::OneByOne, .. }));
        let mut run = 0;
        let mut last = None;
        for (at, call) in plan.calls.iter().enumerate() {
            let answered = self.at_gate.get(&call.node).copied();
            let may_not = self.agents[agent].hidden.contains(&call.tool)
                || self.bars(agent, call.tool)
                || answered == Some(AtGate::Refused);
            let routing = match may_not {
                true => Routing::ShortCircuit,
                false => self.program.routing(call, at, answered),
            };
            let joins = !one_by_one && last == Some(routing) && routing != Routing::Serial;
            run += usize::from(at > 0 && !joins);
            last = Some(routing);
            let seen = |_: &&ToolPlan| !self.agents[agent].hidden.contains(&call.tool);
            let tool = self.program.tools.get(call.tool).filter(seen);
            self.nodes.insert(call.node, Node { call, tool, batch, at, run, routing, agent, parent });
            call.script.steps.iter().for_each(|step| self.step(step, agent, call.node));
        }
    }

    fn step(&mut self, step: &'p Step, agent: usize, handler: u32) {
        match step {
            Step::Sleep(_) | Step::Emit => {}
            Step::Nest(nested) => {
                for one in nested {
                    let owner = Owner::Handler { dropped_ms: one.dropped_ms };
                    self.place(&one.batch, owner, agent, Some(handler));
                }
            }
            Step::Fork(fork) => self.fork(fork, agent, Some(handler)),
        }
    }

    fn fork(&mut self, plan: &'p ForkPlan, of: usize, handler: Option<u32>) {
        let child = self.agents.len();
        let parent = &self.agents[of];
        let tools = self.program.tools.iter().enumerate();
        let from_forks = tools.filter(|(_, tool)| tool.hidden_from_forks).map(|(at, _)| at);
        let hidden = parent.hidden.iter().copied().chain(plan.hidden).chain(from_forks).collect();
        let barred = parent.barred.iter().chain(&plan.barred).copied().collect();
        let bars = parent.bars.iter().chain([&plan.barred]).cloned().collect();
        self.agents.push(Agent {
            root: parent.root,
            parent: Some(of),
            cap: plan.cap.or(parent.cap),
            concurrent_of: if plan.shares_concurrent { parent.concurrent_of } else { child },
            fork: Some(plan.number),
            hidden,
            barred,
            bars,
            late: parent.late || (plan.outlives && handler.is_some()),
        });
        plan.turns.iter().for_each(|turn| self.turn(turn, child, handler));
        plan.forks.iter().for_each(|fork| self.fork(fork, child, handler));
    }

    /// Whether an agent may not call a tool because it lacks the capability.
    pub fn bars(&self, agent: usize, tool: usize) -> bool {
        let is_bound = self.program.tools.get(tool).is_some_and(|tool| !tool.needs_no_capability);
        is_bound && self.agents[agent].barred.contains(&tool)
    }

    /// The call and the calls whose handlers made it, nearest first.
    pub fn lineage(&self, node: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(node), |node| self.nodes.get(node)?.parent)
    }

    /// The agent and the agents it was forked from, nearest first.
    pub fn agents_above(&self, agent: usize) -> impl Iterator<Item = &Agent> {
        std::iter::successors(Some(&self.agents[agent]), |it| it.parent.map(|parent| &self.agents[parent]))
    }

    /// The calls of which at most one runs at a time, including this one: those of its tree and tool with its key. A
    /// call without a key has no other peers.
    pub fn peers(&self, node: u32) -> &[u32] {
        self.groups.get(&self.group_of(node)).map_or(&[], Vec::as_slice)
    }

    /// Whether calls of this tool may wait for a token, because it has a rate or its remote may ask for a pause.
    pub fn waits_for_tokens(&self, tool: usize) -> bool {
        let hints = |end: End| matches!(end, End::Limited(Some(_)));
        self.program.tools.get(tool).is_some_and(|tool| tool.guards.rate.is_some())
            || self.nodes.values().any(|it| it.call.tool == tool && it.call.script.ends().any(hints))
    }

    /// The groups of calls with keys.
    pub fn keyed(&self) -> impl Iterator<Item = &[u32]> {
        let keyed = self.groups.iter().filter(|(group, _)| matches!(group, Group::Keyed(..)));
        keyed.map(|(_, nodes)| nodes.as_slice())
    }

    /// The group of a call.
    pub fn group_of(&self, node: u32) -> Group {
        let it = &self.nodes[&node];
        match it.call.key {
            None => Group::Alone(node),
            Some(key) => Group::Keyed(self.agents[it.agent].root, it.call.tool, key.key),
        }
    }

    /// The root session of a call.
    pub fn root_of(&self, node: u32) -> usize {
        self.nodes.get(&node).map_or(0, |node| self.agents[node.agent].root)
    }
}

/// A serial scope (CC-8), ordered by rank. A lineage has only one tree, so the order of trees does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The scope of a root session's tree.
    Tree(usize),
    /// A named scope.
    Named(usize),
}

impl Node<'_> {
    /// Its class, if it is routed to one.
    pub fn class(&self) -> Option<ToolClass> {
        self.routing.class()
    }

    /// Its serial scope, if it has one: the named one of its tool, or that of its tree.
    pub fn scope(&self, index: &Index<'_>) -> Option<Scope> {
        let tool = self.tool.filter(|_| self.class() == Some(ToolClass::Serial))?;
        Some(tool.scope.map_or(Scope::Tree(index.agents[self.agent].root), Scope::Named))
    }

    /// Its call id.
    pub fn id(&self) -> String {
        call_id(if self.call.twin { self.batch } else { self.call.node })
    }
}

/// The id of the call with this number.
pub(crate) fn call_id(node: u32) -> String {
    format!("c{node}")
}

/// The number of the call with this id. Twins have the id of the call before them.
pub(crate) fn node_of_id(id: &CallId) -> Option<u32> {
    id.as_str().strip_prefix('c')?.parse().ok()
}

impl BatchPlan {
    /// The number of its first call, which identifies it; `None` if it is empty.
    pub fn key(&self) -> Option<u32> {
        self.calls.first().map(|call| call.node)
    }
}

impl Program {
    /// The routing of a call at this index of its batch (CL-2).
    fn routing(&self, call: &CallPlan, at: usize, answered: Option<AtGate>) -> Routing {
        let is_twin = call.twin && at > 0;
        let is_aborted = self.hooks && !matches!(call.hook, HookPlan::Go(_));
        // The breaker is checked before the approver is asked.
        let allows =
            |tool: &&ToolPlan| tool.consent != Consent::Forbidden || answered == Some(AtGate::BreakerOpen);
        match self.tools.get(call.tool).filter(allows) {
            Some(tool) if !is_twin && !is_aborted && !call.broken => {
                Routing::from(if tool.recursive { ToolClass::Concurrent } else { tool.class })
            }
            _ => Routing::ShortCircuit,
        }
    }
}
