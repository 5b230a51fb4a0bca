//! What the digests of an agent's calls have in common, kept from one call to the next.

use crate::tool::ToolEntry;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use toolyard_core::{DigestScope, SessionId, Terms};

/// How many scopes are kept beside the first: for as many tools as an agent usually calls in turns. The oldest goes
/// first.
const KEPT_MAX: usize = 8;

/// The scopes of the last calls of an agent that were digested.
#[derive(Debug, Default)]
pub(super) struct DigestScopes {
    /// The first one, which is looked at without a lock: many agents have one tool that they call all the time.
    first: OnceLock<Arc<DigestScope>>,
    others: Mutex<Vec<Arc<DigestScope>>>,
}

impl DigestScopes {
    /// The scope of calls of this tool in this session, which is always the same, and under these terms.
    pub(super) fn scope(&self, entry: &ToolEntry, session: &SessionId, terms: &Terms) -> Arc<DigestScope> {
        let is_it = |scope: &&Arc<DigestScope>| {
            entry.has_name(scope.tool()) && entry.has_version(scope.version()) && scope.terms() == terms
        };
        let make = || {
            let (name, version) = (entry.shared_name(), entry.shared_version());
            Arc::new(DigestScope::new(name, version, session.clone(), *terms))
        };
        if let Some(scope) = Some(self.first.get_or_init(make)).filter(is_it) {
            return scope.clone();
        }
        let mut kept = self.others.lock();
        if let Some(scope) = kept.iter().find(is_it) {
            return scope.clone();
        }
        let scope = make();
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(scope.clone());
        scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ToolSpec,
        tool::{Guards, tool_fn},
    };
    use toolyard_core::{AgentTerms, Confirmations, PolicyIdentity, Sandbox};

    fn entry(name: &str) -> ToolEntry {
        let spec = ToolSpec::read(name);
        let factory = tool_fn(spec.clone(), |(): (), _| async { Ok(()) });
        ToolEntry::new(Arc::new(factory), spec, &Guards::default(), &[]).unwrap()
    }

    /// SM-7: calls share a scope if tool, version and terms are the same, and no others do; as many are kept as may be.
    #[test]
    fn a_scope_is_shared_by_calls_of_one_tool_and_terms() {
        let (scopes, session, tool) = (DigestScopes::default(), SessionId::from("s"), entry("a"));
        let agent = AgentTerms::of([], &Confirmations::default());
        let terms = Terms { policy: PolicyIdentity::Content([7; 32]), agent, sandbox: Sandbox::Host };
        let of = |entry: &ToolEntry, terms: &Terms| scopes.scope(entry, &session, terms);
        let first = of(&tool, &terms);
        assert!(Arc::ptr_eq(&first, &of(&tool, &terms)));
        let other = Terms { sandbox: Sandbox::Process, ..terms };
        assert_eq!(*of(&tool, &other).terms(), other);
        assert!(
            !Arc::ptr_eq(&first, &of(&entry("a"), &terms)),
            "a tool that has replaced it may be another version"
        );
        let second = of(&tool, &other);
        assert!(Arc::ptr_eq(&second, &of(&tool, &other)));
        for n in 0..KEPT_MAX {
            assert_eq!(**of(&entry(&format!("t{n}")), &terms).tool(), *format!("t{n}"));
        }
        assert_eq!(scopes.others.lock().len(), KEPT_MAX);
        assert!(!Arc::ptr_eq(&second, &of(&tool, &other)), "it was the oldest");
        assert!(Arc::ptr_eq(&first, &of(&tool, &terms)), "it stays");
    }
}
