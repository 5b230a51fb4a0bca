//! The settings of a root session.

use super::settings::settings_of_both;
use crate::{
    agent::{Narrowing, Permissions, PreparedOptions, Services},
    config::Budgets,
    record::SessionTerms,
    tasks::Contained,
};
use std::{num::NonZeroUsize, sync::Arc};
use toolyard_core::{Capabilities, Confirmations, PathScope, Resources};

/// How often a session's calls are granted, compared with those of other sessions in the same line (CC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// One call per round. The default.
    #[default]
    Normal,
    /// Two calls per round.
    High,
    /// Four calls per round.
    Urgent,
}

impl Priority {
    pub(crate) const fn weight(self) -> u8 {
        match self {
            Self::Normal => 1,
            Self::High => 2,
            Self::Urgent => 4,
        }
    }
}

/// What a session may run at once and spend at most, whatever its other settings and those of its engine are. What is not
/// set bounds nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCeiling {
    /// Calls of the session that run at once, over all classes (CL-6).
    pub max_in_flight: Option<NonZeroUsize>,
    /// Calls that run at once in the session and all its forks together (CL-6).
    pub tree_max_in_flight: Option<NonZeroUsize>,
    /// What it may spend (RT-11).
    pub budgets: Budgets,
}

/// The settings in which one session differs from its engine.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SessionOptions {
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    pub(crate) priority: Priority,
    pub(crate) budgets: Option<Budgets>,
    pub(crate) ceiling: Option<SessionCeiling>,
    pub(crate) resources: Resources,
    pub(crate) scope: Option<Arc<dyn PathScope>>,
    pub(crate) narrowing: Narrowing,
    pub(crate) confirmations: Option<Confirmations>,
    /// Whether nobody has named the session (SM-8).
    pub(crate) is_unnamed: bool,
    /// Whether its callers cannot resume a turn (SM-10).
    pub(crate) never_resumed: bool,
    pub(crate) description: Option<Arc<str>>,
}

settings_of_both! {
    impl SessionOptions;
    /// Limits it to these tools: it and its forks know of no others.
    only_tools;
    /// Sets what it may touch, within the capabilities that the engine sets for all sessions (PO-1b).
    capabilities;
    /// Sets its role, which is passed to the policy. It and its forks do not know of tools that are
    /// [hidden](crate::ToolSpec::hidden_from_role) from that role.
    role;
    /// Bounds the calls of this session that run at once, over all classes (CL-6).
    ///
    /// # Panics
    /// If that is zero (KT-4): a session is not built, so there is no later place to say so.
    max_in_flight;
    /// Adds a text to its record: what whoever opens it has to know so that another life of the engine can open it as it
    /// was ([`PastSession::description`](crate::PastSession::description), JR-10). The engine itself does nothing with it.
    described;
}

impl SessionOptions {
    /// Bounds the calls that run at once in this session and all its forks together (CL-6).
    ///
    /// # Panics
    /// If that is zero (KT-4).
    #[must_use]
    pub fn tree_max_in_flight(mut self, max: usize) -> Self {
        let max = NonZeroUsize::new(max).expect("tree_max_in_flight must not be zero");
        self.tree_max_in_flight = Some(max);
        self
    }

    /// Sets how many calls of this session and its forks are granted for each call of another waiting session (CC-3).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets what it may spend, replacing the engine's setting (RT-11).
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = Some(budgets);
        self
    }

    /// Bounds it by the smaller of what it would have otherwise, by its own settings or the engine's, and this: for what
    /// somebody asks for who must not get more than he was given.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Budget, Budgets, Call, Engine, SessionCeiling, SessionOptions, ToolContext, ToolSpec, tool_fn};
    /// let echo = tool_fn(ToolSpec::pure("echo"), |(): (), _: ToolContext| async { Ok("") });
    /// let budgets = |calls| Budgets::default().session(Budget::calls(calls));
    /// let engine = Engine::builder().tool(echo).budgets(budgets(1)).build().await.unwrap();
    /// let asked = SessionCeiling { budgets: budgets(100), ..SessionCeiling::default() };
    /// let session = engine.open("demo", SessionOptions::default().at_most(asked)).unwrap();
    /// assert!(session.call(Call::new("1", "echo", "{}")).await.status.is_ok());
    /// assert!(session.call(Call::new("2", "echo", "{}")).await.status.is_err()); // the engine's budget is the smaller one
    /// # }
    /// ```
    #[must_use]
    pub fn at_most(mut self, ceiling: SessionCeiling) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Sets which of its calls need confirmation, replacing the engine's setting (PO-3).
    #[must_use]
    pub fn confirmations(mut self, confirmations: Confirmations) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// Says that its callers cannot resume a turn, as clients of a protocol that knows no turns: a drain ends its waiting
    /// calls where it would suspend them (SM-10).
    #[must_use]
    pub fn without_resume(mut self) -> Self {
        self.never_resumed = true;
        self
    }

    /// Gives its tools a shared value; see [`Resources`].
    #[must_use]
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources = self.resources.with(value);
        self
    }

    /// Gives it a workspace of its own: its tools reach it as a resource, and its paths are checked against it.
    #[must_use]
    pub fn workspace<W: PathScope + 'static>(mut self, workspace: Arc<W>) -> Self {
        self.resources = self.resources.with_shared(workspace.clone());
        self.scope = Some(workspace);
        self
    }

    /// What the session will have, with the engine's settings for what these leave open. Asks the workspace for its
    /// root, which is code of the embedder.
    pub(crate) fn prepared(self, engine: &Services) -> PreparedOptions {
        self.under_ceiling(engine).settled(engine)
    }

    /// With its ceiling as settings of its own.
    fn under_ceiling(mut self, engine: &Services) -> Self {
        let Some(ceiling) = self.ceiling.take() else { return self };
        let smaller =
            |own: Option<NonZeroUsize>, most: Option<NonZeroUsize>| own.into_iter().chain(most).min();
        self.max_in_flight = smaller(self.max_in_flight.or(engine.max_in_flight), ceiling.max_in_flight);
        self.tree_max_in_flight =
            smaller(self.tree_max_in_flight.or(engine.tree_max_in_flight), ceiling.tree_max_in_flight);
        self.budgets = Some(self.budgets.unwrap_or(engine.budgets).min(ceiling.budgets));
        self
    }

    fn settled(self, engine: &Services) -> PreparedOptions {
        let (terms, is_named) = (engine.recorder.is_some().then(|| self.terms()), !self.is_unnamed);
        let scope = self.scope.map(Contained::new).or_else(|| engine.scope.clone());
        let root = scope.as_ref().map(|scope| scope.root());
        let confirmations = self.confirmations.as_ref().unwrap_or(&engine.confirmations);
        let confirmations = (self.confirmations.is_some() || confirmations.trusts_any())
            .then(|| confirmations.clone().in_workspace(root));
        let permissions = Permissions::root(engine.capabilities.as_ref(), self.narrowing, confirmations);
        PreparedOptions {
            max_in_flight: self.max_in_flight.or(engine.max_in_flight),
            tree_cap: self.tree_max_in_flight.or(engine.tree_max_in_flight),
            weight: self.priority.weight(),
            budgets: self.budgets.unwrap_or(engine.budgets),
            resources: match self.resources.is_empty() {
                true => engine.resources.clone(),
                false => Arc::new(engine.resources.overlaid(&self.resources)),
            },
            scope,
            permissions: Arc::new(permissions),
            terms,
            is_named,
            is_resumed: !self.never_resumed,
        }
    }

    /// What a recorder is told of them.
    fn terms(&self) -> SessionTerms {
        SessionTerms {
            max_in_flight: self.max_in_flight,
            tree_max_in_flight: self.tree_max_in_flight,
            weight: self.priority.weight(),
            budgets: self.budgets,
            confirmations: self.confirmations.clone(),
            description: self.description.clone(),
            ..self.narrowing.terms()
        }
    }
}
