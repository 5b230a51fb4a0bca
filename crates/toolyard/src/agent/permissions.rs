//! What an agent may do apart from the policy: the tools it knows of, what it may touch, its role, and which calls
//! need confirmation (PO-1b, PO-3). A fork inherits this from its parent and may narrow it (CL-7).

use super::services::Services;
use crate::{record::SessionTerms, tool::ToolEntry};
use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};
use toolyard_core::{AgentTerms, Capabilities, Confirmations};

/// What an agent may do; shared with the forks that narrow nothing.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    /// The tools it knows of; `None` for all.
    visible: Option<BTreeSet<Arc<str>>>,
    /// What it may touch, including the capabilities of the agents above it: all of them must agree.
    capabilities: Vec<Arc<Capabilities>>,
    /// The roles of the agents above it, then its own.
    roles: Vec<Arc<str>>,
    /// Which calls need confirmation, if that differs from the engine's setting.
    confirmations: Option<Confirmations>,
    /// The terms that digests know it by, once one was made.
    terms: OnceLock<AgentTerms>,
}

/// The restrictions that a session or fork adds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Narrowing {
    pub(crate) tools: Option<BTreeSet<Arc<str>>>,
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) role: Option<Arc<str>>,
}

impl Narrowing {
    /// What a recorder is told of it.
    pub(crate) fn terms(&self) -> SessionTerms {
        let Self { tools, capabilities, role } = self.clone();
        SessionTerms { only_tools: tools, capabilities, role, ..SessionTerms::default() }
    }

    fn is_nothing(&self) -> bool {
        self.tools.is_none() && self.capabilities.is_none() && self.role.is_none()
    }
}

impl Permissions {
    /// What a root session may do. `confirmations` replaces the engine's setting.
    pub(crate) fn root(
        engine: Option<&Arc<Capabilities>>,
        narrowing: Narrowing,
        confirmations: Option<Confirmations>,
    ) -> Self {
        let all =
            Self { capabilities: engine.cloned().into_iter().collect(), confirmations, ..Self::default() };
        all.narrowed(narrowing)
    }

    /// What a fork may do.
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
            terms: OnceLock::new(),
        }
    }

    /// Whether it knows of a tool at this fork depth.
    pub(super) fn sees(&self, entry: &ToolEntry, depth: u8) -> bool {
        let is_hidden = entry.spec().settings.hidden_from.as_ref().is_some_and(|hidden| {
            (hidden.sub_agents && depth > 0) || self.roles.iter().any(|role| hidden.roles.contains(role))
        });
        !is_hidden && self.visible.as_ref().is_none_or(|names| names.contains(entry.name()))
    }

    /// Whether it may call a tool that it knows of.
    pub(crate) fn calls(&self, entry: &ToolEntry) -> bool {
        !entry.spec().needs_capability()
            || self.capabilities().all(|capabilities| capabilities.tool(entry.name()))
    }

    /// What it may touch: all of these must agree.
    pub(crate) fn capabilities(&self) -> impl Iterator<Item = &Capabilities> {
        self.capabilities.iter().map(Arc::as_ref)
    }

    /// Its role.
    pub(crate) fn role(&self) -> Option<&str> {
        self.roles.last().map(Arc::as_ref)
    }

    /// Which calls need confirmation.
    pub(crate) fn confirmations<'a>(&'a self, engine: &'a Services) -> &'a Confirmations {
        self.confirmations.as_ref().unwrap_or(&engine.confirmations)
    }

    /// What digests know of all this (SM-7).
    pub(crate) fn terms(&self, engine: &Services) -> AgentTerms {
        *self.terms.get_or_init(|| AgentTerms::of(self.capabilities(), self.confirmations(engine)))
    }
}
