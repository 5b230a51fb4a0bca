//! A token: who holds it, and what for.

use super::{Scope, secret::SecretHash};
use std::{collections::BTreeSet, sync::Arc};
use tokio_util::sync::CancellationToken;
use toolyard::{Budgets, Capabilities, Confirmations};

/// The name of the parent program.
pub(crate) const PARENT: &str = "@parent";

/// What a bearer token admits to. The token itself is not kept, only its hash.
///
/// # Examples
/// ```
/// use toolyard_server::{Scope, SecretHash, Token};
/// let token = Token::new("ci", SecretHash::of("a long random text"), [Scope::Call]).roles(["builder"]);
/// assert_eq!(token.name(), "ci");
/// ```
#[derive(Debug, Clone)]
pub struct Token {
    name: Arc<str>,
    pub(crate) hash: SecretHash,
    scopes: BTreeSet<Scope>,
    pub(crate) self_approve: bool,
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) confirmations: Option<Confirmations>,
    pub(crate) budgets: Budgets,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) workspaces: BTreeSet<String>,
    /// Whether it is that of the parent program, which is nobody else, whatever its name.
    is_parent: bool,
    /// Fires when it is admitted no longer.
    pub(crate) gone: CancellationToken,
}

/// A token that must not exist: its holder would approve its own calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token '{0}' has both 'call' and 'approve', so its holder would approve its own calls: make two tokens, or set self_approve = true"
)]
pub struct SelfApproval(pub Arc<str>);

impl Token {
    /// A token of this name, which is that of its holder in events and answers, with this hash.
    pub fn new(name: impl Into<Arc<str>>, hash: SecretHash, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            name: name.into(),
            hash,
            scopes: scopes.into_iter().collect(),
            self_approve: false,
            capabilities: None,
            confirmations: None,
            budgets: Budgets::default(),
            roles: BTreeSet::new(),
            workspaces: BTreeSet::new(),
            is_parent: false,
            gone: CancellationToken::new(),
        }
    }

    /// That of the parent program, which has started this one and may do all that it can (AG-14). Nobody is admitted by it.
    pub(crate) fn parent() -> Self {
        let token = Self::new(PARENT, SecretHash::of(&super::new_token()), Scope::ALL).self_approve();
        Self { is_parent: true, ..token }
    }

    /// Whether it is that of the parent program.
    pub(crate) fn is_parent(&self) -> bool {
        self.is_parent
    }

    /// Whether what belongs to one belongs to the other (HT-7): both have the name of one holder.
    pub(crate) fn is_of(&self, owner: &Self) -> bool {
        self.name == owner.name && self.is_parent == owner.is_parent
    }

    /// Allows its holder to approve its own calls (HT-6).
    #[must_use]
    pub fn self_approve(mut self) -> Self {
        self.self_approve = true;
        self
    }

    /// Bounds what its sessions may touch, within what the engine lets all sessions touch (HT-7).
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets which calls of its sessions need approval, beside what the engine says: the stricter counts (HT-7).
    #[must_use]
    pub fn confirmations(mut self, confirmations: Confirmations) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// Bounds what each of its sessions may spend (HT-7).
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Names the roles that its sessions may have. Without any, they have none (HT-7).
    #[must_use]
    pub fn roles<T: Into<String>>(mut self, roles: impl IntoIterator<Item = T>) -> Self {
        self.roles = roles.into_iter().map(Into::into).collect();
        self
    }

    /// Names the workspaces that its sessions may have beside the engine's own (HT-7), as
    /// [`ServerOptions::workspace`](crate::ServerOptions::workspace) names them.
    #[must_use]
    pub fn workspaces<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.workspaces = names.into_iter().map(Into::into).collect();
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has this scope.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// What it lets its holder do.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scopes.iter().copied()
    }

    /// Whether it is the same as another: the same secret of the same holder, for the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        let Self {
            name,
            hash,
            scopes,
            self_approve,
            capabilities,
            confirmations,
            budgets,
            roles,
            workspaces,
            is_parent,
            gone: _,
        } = self;
        hash.is(&other.hash)
            && (name, scopes, self_approve) == (&other.name, &other.scopes, &other.self_approve)
            && (capabilities, confirmations) == (&other.capabilities, &other.confirmations)
            && (budgets, roles, workspaces) == (&other.budgets, &other.roles, &other.workspaces)
            && *is_parent == other.is_parent
    }

    /// Refuses a token whose holder would approve its own calls unless that is meant (HT-6).
    pub(crate) fn checked(self) -> Result<Self, SelfApproval> {
        match self.has(Scope::Call) && self.has(Scope::Approve) && !self.self_approve {
            true => Err(SelfApproval(self.name)),
            // A server that lets it go lets it go alone.
            false => Ok(Self { gone: CancellationToken::new(), ..self }),
        }
    }
}
