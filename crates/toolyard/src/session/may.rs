//! What an agent may, as far as that is not for the policy to say: which tools it knows of, what it may touch, in which
//! role, and what is asked about (PO-1b, PO-3). A fork has its parent's and may narrow it (CL-7).

use crate::{gate::Gate, registry::ToolEntry};
use std::{collections::BTreeSet, sync::Arc};
use toolyard_core::{Capabilities, Confirmations};

/// What an agent may; shared with forks that have nothing otherwise.
#[derive(Debug, Default)]
pub(crate) struct May {
    /// The tools it knows of; `None` for all.
    visible: Option<BTreeSet<Arc<str>>>,
    /// What it may touch: all of these must say yes, those of the agents above it among them.
    capabilities: Vec<Arc<Capabilities>>,
    /// Its role, and those of the agents above it.
    roles: Vec<Arc<str>>,
    /// What is asked about, where that is otherwise than in its engine.
    confirmations: Option<Confirmations>,
}

/// What narrows what an agent may.
#[derive(Debug, Clone, Default)]
pub(crate) struct Narrowing {
    pub(crate) tools: Option<BTreeSet<Arc<str>>>,
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) role: Option<Arc<str>>,
}

impl Narrowing {
    fn is_nothing(&self) -> bool {
        self.tools.is_none() && self.capabilities.is_none() && self.role.is_none()
    }
}

impl May {
    /// What a session may, where what is asked about is `confirmations`.
    pub(super) fn root(
        engine: Option<&Arc<Capabilities>>,
        narrowing: Narrowing,
        confirmations: Option<Confirmations>,
    ) -> Self {
        let all =
            Self { capabilities: engine.cloned().into_iter().collect(), confirmations, ..Self::default() };
        all.narrowed(narrowing)
    }

    /// What a fork may.
    pub(super) fn fork(self: &Arc<Self>, narrowing: Narrowing) -> Arc<Self> {
        match narrowing.is_nothing() {
            true => self.clone(),
            false => Arc::new(self.narrowed(narrowing)),
        }
    }

    fn narrowed(&self, narrowing: Narrowing) -> Self {
        let visible = match (&self.visible, narrowing.tools) {
            (own, None) => own.clone(),
            (None, Some(names)) => Some(names),
            (Some(own), Some(names)) => Some(own.intersection(&names).cloned().collect()),
        };
        Self {
            visible,
            capabilities: self.capabilities.iter().cloned().chain(narrowing.capabilities).collect(),
            roles: self.roles.iter().cloned().chain(narrowing.role).collect(),
            confirmations: self.confirmations.clone(),
        }
    }

    /// Whether it knows of a tool, at this depth.
    pub(super) fn sees(&self, entry: &ToolEntry, depth: u8) -> bool {
        let hidden = &entry.spec().hidden_from;
        let is_hidden = (hidden.sub_agents && depth > 0)
            || (!hidden.roles.is_empty() && self.roles.iter().any(|role| hidden.roles.contains(role)));
        !is_hidden && self.visible.as_ref().is_none_or(|names| names.contains(entry.name()))
    }

    /// Whether it may call a tool that it knows of.
    pub(crate) fn calls(&self, entry: &ToolEntry) -> bool {
        !entry.spec().requires_capability || self.capabilities().all(|may| may.tool(entry.name()))
    }

    /// What it may touch: every one of these is to say yes.
    pub(crate) fn capabilities(&self) -> impl Iterator<Item = &Capabilities> {
        self.capabilities.iter().map(Arc::as_ref)
    }

    /// The role it is in.
    pub(crate) fn role(&self) -> Option<&str> {
        self.roles.last().map(Arc::as_ref)
    }

    /// What is asked about.
    pub(crate) fn confirmations<'a>(&'a self, gate: &'a Gate) -> &'a Confirmations {
        self.confirmations.as_ref().unwrap_or(&gate.confirmations)
    }
}
