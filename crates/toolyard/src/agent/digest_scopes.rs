//! What the digests of an agent's calls have in common, kept from one call to the next.

use crate::tool::ToolEntry;
use parking_lot::Mutex;
use std::sync::Arc;
use toolyard_core::{DigestScope, SessionId, Terms};

/// How many scopes are kept: for as many tools as an agent usually calls in turns. The oldest goes first.
const KEPT_MAX: usize = 8;

/// The scopes of the last calls of an agent that were digested.
#[derive(Debug, Default)]
pub(super) struct DigestScopes(Mutex<Vec<Arc<DigestScope>>>);

impl DigestScopes {
    /// The scope of calls of this tool in this session, which is always the same, and under these terms.
    pub(super) fn scope(&self, entry: &ToolEntry, session: &SessionId, terms: &Terms) -> Arc<DigestScope> {
        let mut kept = self.0.lock();
        let is_it = |scope: &&Arc<DigestScope>| {
            entry.has_name(scope.tool()) && entry.has_version(scope.version()) && scope.terms() == terms
        };
        if let Some(scope) = kept.iter().find(is_it) {
            return scope.clone();
        }
        let (name, version) = (entry.shared_name(), entry.shared_version());
        let scope = Arc::new(DigestScope::new(name, version, session.clone(), *terms));
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(scope.clone());
        scope
    }
}
