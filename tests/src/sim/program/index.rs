//! A program by its parts: which call is where, and how it is routed.

use super::{BatchPlan, CallPlan, Consent, End, ForkPlan, HookPlan, How, Program, Step, ToolPlan, TurnPlan};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{Routing, ToolClass};

/// A program by its parts. A batch is known by the number of its first call.
#[derive(Debug)]
pub struct Index<'p> {
    /// The program.
    pub program: &'p Program,
    /// Its calls, by number.
    pub nodes: BTreeMap<u32, Node<'p>>,
    /// Its batches that have a call.
    pub batches: BTreeMap<u32, Placed<'p>>,
    /// Its agents; the first ones are the root sessions.
    pub agents: Vec<Agent>,
    /// Its calls that could run, by what makes them run at most once together.
    groups: BTreeMap<Group, Vec<u32>>,
    /// Its calls that did not come past the gate.
    refused: BTreeSet<u32>,
}

/// What calls have in common that run at most once together (ID-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Nothing: it is a call without a key.
    Alone(u32),
    /// Root session, tool and key.
    Keyed(usize, usize, u32),
}

/// A call and where it is.
#[derive(Debug, Clone, Copy)]
pub struct Node<'p> {
    /// The call.
    pub call: &'p CallPlan,
    /// Its tool, if there is one.
    pub tool: Option<&'p ToolPlan>,
    /// Its batch.
    pub batch: u32,
    /// Its place in the batch.
    pub at: usize,
    /// Its run.
    pub run: usize,
    /// How it is routed.
    pub routing: Routing,
    /// The agent whose call it is.
    pub agent: usize,
    /// The call in whose handler it is made.
    pub parent: Option<u32>,
}

/// A batch and where it is.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'p> {
    /// The batch.
    pub plan: &'p BatchPlan,
    /// The turn it belongs to, or the handler that makes it through its context.
    pub owner: Owner<'p>,
    /// The agent that runs it.
    pub agent: usize,
    /// The call in whose handler it is made.
    pub parent: Option<u32>,
}

/// Who runs a batch.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'p> {
    /// A turn.
    Turn(&'p TurnPlan),
    /// A handler, through its context; the batch's future may be dropped.
    Handler {
        /// After so many milliseconds.
        dropped_ms: Option<u64>,
    },
}

/// An agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The root session at the top of its tree.
    pub root: usize,
    /// The agent that forked it.
    pub parent: Option<usize>,
    /// The most calls of it at once.
    pub cap: Option<usize>,
    /// Whose concurrent pool it uses.
    pub concurrent_of: usize,
    /// The number of its fork; a root session has none.
    pub fork: Option<u32>,
    /// The tools it does not see.
    pub hidden: Vec<usize>,
    /// The tools it has no capability for.
    pub barred: Vec<usize>,
}

impl<'p> Index<'p> {
    /// The index of a program, where these of its calls did not come past the gate for what only a run decides: the
    /// policy in force, and answers that are remembered.
    pub fn new(program: &'p Program, refused: BTreeSet<u32>) -> Self {
        let mut index = Self {
            program,
            nodes: BTreeMap::new(),
            batches: BTreeMap::new(),
            agents: Vec::new(),
            groups: BTreeMap::new(),
            refused,
        };
        for (root, session) in program.sessions.iter().enumerate() {
            let cap = session.cap.or(program.cap);
            let (fork, hidden, barred) = (None, Vec::new(), session.barred.clone());
            index.agents.push(Agent { root, parent: None, cap, concurrent_of: root, fork, hidden, barred });
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

    fn turn(&mut self, turn: &'p TurnPlan, agent: usize, parent: Option<u32>) {
        self.place(&turn.batch, Owner::Turn(turn), agent, parent);
    }

    fn place(&mut self, plan: &'p BatchPlan, owner: Owner<'p>, agent: usize, parent: Option<u32>) {
        let Some(batch) = plan.key() else { return };
        self.batches.insert(batch, Placed { plan, owner, agent, parent });
        let one_by_one = matches!(owner, Owner::Turn(TurnPlan { how: How::OneByOne, .. }));
        let mut run = 0;
        let mut last = None;
        for (at, call) in plan.calls.iter().enumerate() {
            let may_not = self.agents[agent].hidden.contains(&call.tool)
                || self.bars(agent, call.tool)
                || self.refused.contains(&call.node);
            let routing = match may_not {
                true => Routing::ShortCircuit,
                false => self.program.routing(call, at),
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
        self.agents.push(Agent {
            root: parent.root,
            parent: Some(of),
            cap: plan.cap.or(parent.cap),
            concurrent_of: if plan.shares_concurrent { parent.concurrent_of } else { child },
            fork: Some(plan.number),
            hidden,
            barred,
        });
        plan.turns.iter().for_each(|turn| self.turn(turn, child, handler));
        plan.forks.iter().for_each(|fork| self.fork(fork, child, handler));
    }

    /// Whether an agent may not call a tool, for it has no capability for it.
    pub fn bars(&self, agent: usize, tool: usize) -> bool {
        let is_bound = self.program.tools.get(tool).is_some_and(|tool| !tool.needs_no_capability);
        is_bound && self.agents[agent].barred.contains(&tool)
    }

    /// The call, and those in whose handlers it is made, nearest first.
    pub fn lineage(&self, node: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(node), |node| self.nodes.get(node)?.parent)
    }

    /// The agent, and those it was forked from, nearest first.
    pub fn agents_above(&self, agent: usize) -> impl Iterator<Item = &Agent> {
        std::iter::successors(Some(&self.agents[agent]), |it| it.parent.map(|parent| &self.agents[parent]))
    }

    /// The calls that run at most once together with this one, itself among them: those of its tree and tool with its
    /// key. Without a key it is alone.
    pub fn peers(&self, node: u32) -> &[u32] {
        self.groups.get(&self.group_of(node)).map_or(&[], Vec::as_slice)
    }

    /// Whether calls of this tool may wait for a token: it has a rate, or may be asked to wait by its remote.
    pub fn waits_for_tokens(&self, tool: usize) -> bool {
        let hints = |end: End| matches!(end, End::Limited(Some(_)));
        self.program.tools.get(tool).is_some_and(|tool| tool.care.rate.is_some())
            || self.nodes.values().any(|it| it.call.tool == tool && it.call.script.ends().any(hints))
    }

    /// The calls with keys, by what makes them run at most once together.
    pub fn keyed(&self) -> impl Iterator<Item = &[u32]> {
        let keyed = self.groups.iter().filter(|(group, _)| matches!(group, Group::Keyed(..)));
        keyed.map(|(_, nodes)| nodes.as_slice())
    }

    /// What those that run at most once together have in common.
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

/// A serial scope (CC-8). In one lineage there is but one tree, so they are in order of rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// That of a root session.
    Tree(usize),
    /// A named one.
    Named(usize),
}

impl Node<'_> {
    /// The class of a call that runs.
    pub fn class(&self) -> Option<ToolClass> {
        self.routing.class()
    }

    /// Its serial scope, if it has one: a named one by its number, or that of its tree.
    pub fn scope(&self, index: &Index<'_>) -> Option<Scope> {
        let tool = self.tool.filter(|_| self.class() == Some(ToolClass::Serial))?;
        Some(tool.scope.map_or(Scope::Tree(index.agents[self.agent].root), Scope::Named))
    }

    /// The id under which it is told of.
    pub fn id(&self) -> String {
        call_id(if self.call.twin { self.batch } else { self.call.node })
    }
}

/// The id of the call of this number.
pub(crate) fn call_id(node: u32) -> String {
    format!("c{node}")
}

impl BatchPlan {
    /// The number of its first call, by which it is known.
    pub fn key(&self) -> Option<u32> {
        self.calls.first().map(|call| call.node)
    }
}

impl Program {
    /// How a call at this place of its batch is routed (CL-2).
    fn routing(&self, call: &CallPlan, at: usize) -> Routing {
        let is_twin = call.twin && at > 0;
        let is_aborted = self.hooks && !matches!(call.hook, HookPlan::Go(_));
        match self.tools.get(call.tool) {
            Some(tool) if !is_twin && !is_aborted && !call.broken && tool.consent != Consent::Forbidden => {
                Routing::from(if tool.recursive { ToolClass::Concurrent } else { tool.class })
            }
            _ => Routing::ShortCircuit,
        }
    }
}
