//! The settings with which an agent begins, once those that the embedder left open are known.

use super::permissions::{Narrowing, Permissions};
use crate::{config::Budgets, record::SessionTerms, tasks::Contained};
use std::{num::NonZeroUsize, sync::Arc};
use toolyard_core::{PathScope, Resources};

/// What a session is opened with: its own settings over the engine's.
pub(crate) struct PreparedOptions {
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) tree_cap: Option<NonZeroUsize>,
    pub(crate) weight: u8,
    pub(crate) budgets: Budgets,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Contained<Arc<dyn PathScope>>>,
    pub(crate) permissions: Arc<Permissions>,
    /// What a recorder is told of it, if there is one.
    pub(crate) terms: Option<SessionTerms>,
    /// Whether somebody has named the session (SM-8).
    pub(crate) is_named: bool,
    /// Whether its callers can resume turns in another life of the engine (SM-10).
    pub(crate) is_resumed: bool,
}

/// What a fork has that its parent has not.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForkParts {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) narrowing: Narrowing,
    pub(crate) shares_concurrent: bool,
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) description: Option<Arc<str>>,
}

impl ForkParts {
    /// What a recorder is told of it.
    pub(crate) fn terms(&self) -> SessionTerms {
        let Self { narrowing, shares_concurrent, max_in_flight, description, .. } = self;
        SessionTerms {
            max_in_flight: *max_in_flight,
            shares_concurrent: *shares_concurrent,
            description: description.clone(),
            ..narrowing.terms()
        }
    }
}
