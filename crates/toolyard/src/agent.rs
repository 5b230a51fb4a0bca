//! An agent, the root of a session tree or a fork, as its calls need it.
//!
//! ```text
//!   services ── of the engine: limits, rules, permits, time
//!   agent ───── who it is, what it may do, what it may spend, what its calls need to run
//!   tree ────── what all agents of a session share
//! ```
//!
//! Nothing here knows of a call or a batch, so the gate can ask it anything.

mod approvals;
mod digest_scopes;
mod permissions;
mod prepared;
mod request_ids;
mod result_capacity;
mod scopes;
mod services;
mod shared_questions;
mod spending;
mod tree;
mod units;

pub(crate) use approvals::Waiting as WaitingQuestion;
pub(crate) use permissions::{Narrowing, Permissions};
pub(crate) use prepared::{ForkParts, PreparedOptions};
pub(crate) use request_ids::RequestIds;
pub(crate) use result_capacity::ResultCapacity;
pub(crate) use scopes::Scopes;
pub(crate) use services::Services;
pub(crate) use shared_questions::{FromLead, Lead, Settlement, Share, ShareKey};
pub(crate) use tree::Numbers;
pub(crate) use units::ToolUnits;

use crate::{
    budget::Allowance,
    record::{EventPlace, Publisher, When},
    tasks::Contained,
    tool::ToolEntry,
};
use approvals::Approvals;
use digest_scopes::DigestScopes;
use shared_questions::SharedQuestions;
use std::{
    num::NonZeroUsize,
    sync::{Arc, Once},
};
use toolyard_admission::{LeaseId, Need, Reach, UnitId, UnitKind};
use toolyard_core::{
    AgentPath, Budget, Caller, DigestScope, EventKind, LimitScope, PathScope, Placement, Resources,
    SessionId, Terms, ToolClass,
};
use toolyard_redact::GivenMarks;
use tree::Tree;
use units::{ConcurrentPool, Resized};

/// An agent, as its calls need it.
pub(crate) struct Agent {
    pub(crate) id: SessionId,
    pub(crate) path: AgentPath,
    pub(crate) engine: Arc<Services>,
    /// The fork depth; 0 for the root session.
    pub(crate) depth: u8,
    tree: Arc<Tree>,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Contained<Arc<dyn PathScope>>>,
    /// What it may do, within the policy.
    pub(crate) permissions: Arc<Permissions>,
    concurrent: Arc<ConcurrentPool>,
    max_in_flight: Option<NonZeroUsize>,
    cap: Option<UnitId>,
    /// What its calls draw on besides the allowances of its turns.
    allowance: Option<Arc<Allowance>>,
    tools: ToolUnits,
    digest_scopes: DigestScopes,
    announced: Once,
}

impl Agent {
    /// The root of a new tree, which has this number. Runs no code of the embedder.
    pub(crate) fn root_of(
        engine: &Arc<Services>,
        number: u64,
        id: SessionId,
        options: PreparedOptions,
        numbers: Arc<Numbers>,
    ) -> Self {
        let admission = &engine.admission;
        let PreparedOptions {
            max_in_flight, tree_cap, weight, budgets, resources, scope, permissions, ..
        } = options;
        let results_max = engine.limits.results_session_bytes_max;
        let tree = Tree::new(number, tree_cap, weight, budgets, numbers, results_max, admission);
        Self {
            id,
            path: AgentPath::root(),
            engine: engine.clone(),
            depth: 0,
            allowance: tree.spending.agent([]),
            tree,
            resources,
            scope,
            permissions,
            concurrent: ConcurrentPool::new(admission.clone()),
            max_in_flight,
            cap: max_in_flight.map(|max| admission.open(UnitKind::Session, max.get())),
            tools: ToolUnits::new(admission.clone(), Reach::Agent),
            digest_scopes: DigestScopes::default(),
            announced: Once::new(),
        }
    }

    /// A fork of this one (CL-7). Pools and tool limits open only when they are first needed. `above` is the allowance
    /// of the turn of the handler's call that makes it, which may be another session's.
    pub(crate) fn fork(&self, parts: ForkParts, above: Option<&Arc<Allowance>>) -> Self {
        let (engine, tree) = (self.engine.clone(), self.tree.clone());
        let max_in_flight = parts.max_in_flight.or(self.max_in_flight);
        Self {
            id: self.id.clone(),
            path: match parts.name {
                Some(name) => AgentPath::from(format!("{}/{name}", self.path)),
                None => AgentPath::from(format!("{}/{}", self.path, tree.numbers.next_fork())),
            },
            depth: self.depth + 1,
            resources: self.resources.clone(),
            scope: self.scope.clone(),
            permissions: self.permissions.fork(parts.narrowing),
            concurrent: match parts.shares_concurrent {
                true => self.concurrent.clone(),
                false => ConcurrentPool::new(engine.admission.clone()),
            },
            max_in_flight,
            cap: max_in_flight.map(|max| engine.admission.open(UnitKind::Session, max.get())),
            allowance: tree.spending.agent(above.into_iter().chain(self.allowance.as_ref())),
            tools: ToolUnits::new(engine.admission.clone(), Reach::Agent),
            digest_scopes: DigestScopes::default(),
            announced: Once::new(),
            tree,
            engine,
        }
    }

    /// Closes what bounds its calls: it has ended.
    pub(crate) fn close(&self) {
        self.engine.admission.close_units(self.cap);
    }

    /// Whether it knows of a tool.
    pub(crate) fn sees(&self, entry: &ToolEntry) -> bool {
        self.permissions.sees(entry, self.depth)
    }

    /// The answers remembered in its tree, and the questions that wait for one.
    pub(crate) fn approvals(&self) -> &Arc<Approvals> {
        &self.tree.approvals
    }

    /// The open questions that calls of the tree share.
    pub(crate) fn questions(&self) -> &Arc<SharedQuestions> {
        &self.tree.questions
    }

    /// The number of the root session of its tree.
    pub(crate) fn root(&self) -> u64 {
        self.tree.root
    }

    /// Announces the session once, before any other event of it.
    /// Announces the session, and that it goes on from earlier lives of the engine, if it does (JR-11).
    pub(crate) fn announce(&self, recovered: Option<EventKind>) {
        self.announced.call_once(|| {
            self.emit_lazily(|| EventKind::SessionOpened, EventPlace::default);
            if let Some(recovered) = recovered {
                self.emit_lazily(|| recovered, EventPlace::default);
            }
        });
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.id, &self.path).in_role(self.permissions.role())
    }

    /// The counters of its session's name.
    pub(crate) fn numbers(&self) -> &Numbers {
        &self.tree.numbers
    }

    pub(crate) fn next_turn(&self) -> u64 {
        self.tree.numbers.next_turn()
    }

    /// The allowance of a new turn.
    pub(crate) fn turn_allowance(&self) -> Option<Arc<Allowance>> {
        self.tree.spending.turn(self.allowance.as_ref())
    }

    /// Counts a handler of this tree as parked; `false` if `max` of them are (CC-4).
    pub(crate) fn park_in_tree(&self, max: usize) -> bool {
        self.tree.park(max)
    }

    /// Counts one parked handler of this tree less.
    pub(crate) fn unpark_in_tree(&self) {
        self.tree.unpark();
    }

    /// What is left in the allowances that its calls draw on, except those of turns and tools.
    pub(crate) fn budget_left(&self) -> Budget {
        self.allowance.as_ref().map_or(Budget::UNLIMITED, |allowance| allowance.remaining())
    }

    /// The allowances that its calls draw on, except those of turns and tools, nearest first.
    pub(crate) fn allowances(&self) -> impl Iterator<Item = &Allowance> {
        self.allowance.iter().flat_map(|allowance| allowance.chain())
    }

    /// The allowances of the tools that its tree has called, by their names.
    pub(crate) fn tool_allowances(&self) -> Vec<(Arc<str>, Arc<Allowance>)> {
        self.tree.spending.tools()
    }

    /// The marks that the agents of its tree were given in place of secrets.
    pub(crate) fn given_marks(&self) -> &GivenMarks {
        &self.tree.given_marks
    }

    /// The memory of the results of its tree.
    pub(crate) fn result_capacity(&self) -> &ResultCapacity {
        &self.tree.results
    }

    /// The allowance of a tool's calls.
    pub(crate) fn tool_allowance(&self, entry: &ToolEntry) -> Option<Arc<Allowance>> {
        self.tree.spending.tool(entry)
    }

    pub(crate) fn next_batch(&self) -> u64 {
        self.tree.numbers.next_batch()
    }

    /// What the digests of its calls to this tool have in common under these terms.
    pub(crate) fn digest_scope(&self, entry: &ToolEntry, terms: &Terms) -> Arc<DigestScope> {
        self.digest_scopes.scope(entry, &self.id, terms)
    }

    /// What a call of this tool needs to run (CC-1). If its limit was resized by this, the caller finishes that once it
    /// holds no lock.
    #[inline(always)]
    pub(crate) fn need(&self, entry: &ToolEntry, class: ToolClass) -> (Need, Option<Box<Resized<'_>>>) {
        let (tool, resized) = match entry.spec().settings.max_concurrency {
            None => (None, None),
            Some(max) => {
                let (unit, resized) = self.tool_unit(entry, max);
                (Some(unit), resized)
            }
        };
        let need = match class {
            ToolClass::Read => Need::of(self.engine.read, tool, self.cap),
            ToolClass::Serial => Need::serial(self.serial_scope(entry), tool, self.cap),
            ToolClass::Concurrent => Need::of(self.concurrent.unit(), tool, self.cap),
        };
        let need = match entry.spec().placement {
            Placement::Blocking => need.on_thread(self.engine.threads),
            Placement::Task | Placement::Inline => need,
        };
        let need = match self.tree.cap {
            None => need,
            Some(cap) => need.in_tree(cap),
        };
        (need, resized)
    }

    /// The lease of a serial call: its tool's named scope, else the tree's (CC-8).
    fn serial_scope(&self, entry: &ToolEntry) -> LeaseId {
        entry
            .spec()
            .settings
            .serial_scope
            .as_ref()
            .map_or(self.tree.serial, |name| self.engine.scopes.lease(name))
    }

    fn tool_unit(&self, entry: &ToolEntry, max: NonZeroUsize) -> (UnitId, Option<Box<Resized<'_>>>) {
        let units = match entry.spec().settings.limit_scope.unwrap_or_default() {
            LimitScope::Agent => &self.tools,
            LimitScope::Tree => &self.tree.tools,
            LimitScope::Engine => &self.engine.tools,
        };
        units.unit(entry, max.get(), &self.engine)
    }

    /// Emits an event of this session, built only if there is a listener.
    #[inline]
    pub(crate) fn emit_lazily<'a>(
        &'a self,
        kind: impl FnOnce() -> EventKind,
        place: impl FnOnce() -> EventPlace<'a>,
    ) {
        self.emit_lazily_at(When::Now, kind, place);
    }

    /// The same for an event that happened then.
    #[inline]
    pub(crate) fn emit_lazily_at<'a>(
        &'a self,
        when: When,
        kind: impl FnOnce() -> EventKind,
        place: impl FnOnce() -> EventPlace<'a>,
    ) {
        if self.engine.bus.is_listening() {
            self.emit(when, kind(), place());
        }
    }

    // Kept out of line for engines without listeners.
    #[inline(never)]
    fn emit(&self, when: When, mut kind: EventKind, place: EventPlace<'_>) {
        if let Some(redactor) = &self.engine.redactor {
            redactor.event(&mut kind);
        }
        if let Some(details) = kind.details_mut() {
            details.cut();
        }
        self.publisher(when, 1).publish(kind, place);
    }

    /// Publishes as many events of this session at once: of kinds in which nothing is redacted, which no tool words.
    pub(crate) fn publisher(&self, when: When, count: u32) -> Publisher<'_> {
        let (bus, clock) = (&self.engine.bus, &self.engine.clock);
        self.tree.numbers.sequence.publisher(bus, clock, (&self.id, &self.path), when, count)
    }
}
