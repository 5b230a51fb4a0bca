//! What a call runs under, as digests know it (SM-7).

use super::ContentHash;
use crate::{Capabilities, Confirmations, RuntimePolicy, Sandbox, event::Epoch};

/// Which policy a call runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyIdentity {
    /// One with this [fingerprint](RuntimePolicy::fingerprint): the same in every engine.
    Content([u8; 32]),
    /// One without: the policy with this number in this life of an engine, and no other.
    Life {
        /// The engine's life.
        epoch: Epoch,
        /// The number of the policy there, from 1.
        version: u64,
    },
}

impl PolicyIdentity {
    /// The identity of a policy that has this number in this life of an engine. Asks for its fingerprint, so it may
    /// panic as that may.
    pub fn of(policy: &dyn RuntimePolicy, epoch: Epoch, version: u64) -> Self {
        policy.fingerprint().map_or(Self::Life { epoch, version }, Self::Content)
    }

    fn add_to(self, hash: ContentHash) -> ContentHash {
        match self {
            Self::Content(fingerprint) => hash.text("content").bytes(&fingerprint),
            Self::Life { epoch, version } => hash.text("life").number(epoch.number()).number(version),
        }
    }
}

/// What an agent may do apart from the policy: what it may touch, and which of its calls need confirmation. Equal for
/// equal [capabilities](Capabilities) and [confirmations](Confirmations), whatever the order of what is a set.
///
/// # Examples
/// ```
/// use toolyard_core::{AgentTerms, Capabilities, Confirmations};
/// let all = Confirmations::default();
/// let of = |tools: &[&'static str]| AgentTerms::of([&Capabilities::default().tools(tools.to_vec())], &all);
/// assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
/// assert_ne!(of(&["a", "b"]), of(&["a"]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentTerms([u8; 32]);

impl AgentTerms {
    /// Those of an agent with these capabilities, all of which must agree.
    pub fn of<'a>(
        capabilities: impl IntoIterator<Item = &'a Capabilities>,
        confirmations: &Confirmations,
    ) -> Self {
        let capabilities = capabilities.into_iter().map(Capabilities::fingerprint);
        let hash = ContentHash::new("toolyard agent 1").set(capabilities);
        Self(hash.bytes(&confirmations.fingerprint()).finish())
    }
}

/// What a call runs under: everything that decides whether and where it runs and is not in the call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The policy that allows it.
    pub policy: PolicyIdentity,
    /// What its agent may do.
    pub agent: AgentTerms,
    /// Where it executes: the sandbox of the policy's grant, or that of the tool's own form.
    pub sandbox: Sandbox,
}

impl Terms {
    pub(super) fn add_to(&self, hash: ContentHash) -> ContentHash {
        let Self { policy, agent, sandbox } = *self;
        policy.add_to(hash).bytes(&agent.0).text(sandbox.as_str())
    }
}
