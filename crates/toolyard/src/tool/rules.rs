//! The rules in force: the registered tools, and the policy with its version.

use super::{entry::ToolEntry, registry::Table};
use crate::tasks::{Contained, caught};
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Notify;
use toolyard_core::{
    AllowAll, CallError, Caller, Confinement, Denied, ErrorKind, NoForm, PolicyIdentity, RuntimePolicy,
    event::Epoch, wording,
};
use toolyard_redact::Redactor;

/// The number of a policy in its engine, from 1.
pub(crate) type PolicyVersion = u32;

/// A policy's permission, and the version of that policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) confinement: Confinement,
    pub(crate) policy: PolicyVersion,
}

/// The rules in force. They can be replaced at any time; calls that an older policy allowed are checked again before
/// they proceed (V1).
pub(crate) struct RulesInForce {
    current: ArcSwap<Rules>,
    /// The version of the current policy, for the frequent check whether it is still the same.
    version: AtomicU32,
    /// Serialises changes to the rules; readers never wait.
    changing: Mutex<()>,
    /// Wakes waiters in order of arrival. A `watch` channel would wake them in a random order that no seed controls.
    changed: Arc<Notify>,
}

/// A snapshot of the rules; a batch takes one for all of its calls.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) tools: Table,
    pub(crate) policy: VersionedPolicy,
}

impl Rules {
    /// Whether this entry has its name, and no other does that has replaced it.
    pub(crate) fn has(&self, entry: &ToolEntry) -> bool {
        self.tools.get(entry.name()).is_some_and(|now| std::ptr::eq(&**now, entry))
    }
}

/// A policy and its version.
#[derive(Clone)]
pub(crate) struct VersionedPolicy {
    policy: Contained<Arc<dyn RuntimePolicy>>,
    version: PolicyVersion,
    /// The hash of its content, if it gives one (SM-7).
    fingerprint: Option<[u8; 32]>,
}

impl Default for RulesInForce {
    /// No tools, and a policy that allows everything.
    fn default() -> Self {
        Self::new(Arc::new(AllowAll), None)
    }
}

impl RulesInForce {
    /// This policy, and no tools.
    pub(crate) fn new(policy: Arc<dyn RuntimePolicy>, redactor: Option<&Redactor>) -> Self {
        let policy = VersionedPolicy::first(Contained::new(policy), redactor);
        let version = policy.version;
        Self {
            current: ArcSwap::from_pointee(Rules { tools: Table::default(), policy }),
            version: AtomicU32::new(version),
            changing: Mutex::new(()),
            changed: Arc::default(),
        }
    }

    /// Applies `change` to a copy of the rules, puts it in force and tells `announce`, unless it fails. `change` is
    /// borrowed, so that what it refuses is dropped by its owner, and not under the lock.
    fn change<T, E>(
        &self,
        change: &mut dyn FnMut(&mut Rules) -> Result<T, E>,
        announce: impl FnOnce(&T),
    ) -> Result<T, E> {
        let (done, before) = {
            // A change that panics has put nothing in force.
            let _one_at_a_time = self.changing.lock();
            let mut next = Rules::clone(&self.current());
            let done = change(&mut next)?;
            let version = next.policy.version;
            let before = self.current.swap(Arc::new(next));
            // Stored after the rules, so that a reader of this version finds its policy or a later one.
            self.version.store(version, Ordering::Release);
            (done, before)
        };
        announce(&done);
        // Not under the lock, and last: dropping a tool or a policy may change the rules again.
        drop(before);
        Ok(done)
    }

    /// Replaces the tools, unless `change` fails.
    pub(crate) fn change_tools<T, E>(
        &self,
        change: &mut dyn FnMut(&mut Table) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change(&mut |rules| change(&mut rules.tools), |_| {})
    }

    /// Replaces the policy and returns the new version, after telling it to `announce`.
    pub(crate) fn set_policy(
        &self,
        policy: Arc<dyn RuntimePolicy>,
        redactor: Option<&Redactor>,
        announce: impl FnOnce(PolicyVersion),
    ) -> PolicyVersion {
        // Asked for its fingerprint here, where no lock is held.
        let policy = VersionedPolicy::first(Contained::new(policy), redactor);
        let mut change = |rules: &mut Rules| {
            let version = rules.policy.version + 1;
            rules.policy = VersionedPolicy { version, ..policy.clone() };
            Ok::<_, Infallible>(version)
        };
        let Ok(version) = self.change(&mut change, |version| {
            self.changed.notify_waiters();
            announce(*version);
        });
        version
    }

    /// The version of the policy in force.
    pub(crate) fn version(&self) -> PolicyVersion {
        self.version.load(Ordering::Acquire)
    }

    /// Notifies whenever the policy is replaced, from the creation of each `notified()` on.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// The rules in force at this moment. Load them once where many calls go by them.
    pub(crate) fn current(&self) -> Guard<Arc<Rules>> {
        self.current.load()
    }
}

impl VersionedPolicy {
    /// A policy with its fingerprint, as the first one of its engine.
    fn first(policy: Contained<Arc<dyn RuntimePolicy>>, redactor: Option<&Redactor>) -> Self {
        let fingerprint = caught(|| policy.fingerprint()).unwrap_or_else(|panic| {
            let what = "the policy panicked when it was asked for its fingerprint; it counts as having none";
            panic.log(what, None, redactor);
            None
        });
        Self { policy, version: 1, fingerprint }
    }

    /// Which policy this is, for the digests of calls that it allows in this life of its engine.
    pub(crate) fn identity(&self, epoch: Epoch) -> PolicyIdentity {
        let life = PolicyIdentity::Life { epoch, version: self.version.into() };
        self.fingerprint.map_or(life, PolicyIdentity::Content)
    }

    /// Asks the policy, and applies its grant to the forms of the tool (SM-1).
    pub(crate) fn ask(
        &self,
        tool: &ToolEntry,
        args: &Value,
        caller: &Caller<'_>,
        redactor: Option<&Redactor>,
    ) -> Result<Allowed, CallError> {
        match caught(|| self.policy.check(tool.spec(), args, caller)) {
            Ok(Ok(grant)) => match grant.to_forms(tool.forms()) {
                Ok(confinement) => Ok(Allowed { confinement, policy: self.version }),
                Err(error) => Err(no_form(tool, &error)),
            },
            Ok(Err(Denied::Disabled)) => {
                Err(CallError::new(ErrorKind::PermissionDenied, wording::disabled_by_policy(tool.name())))
            }
            Ok(Err(Denied::Because(why))) => Err(CallError::new(ErrorKind::PermissionDenied, why)),
            Err(panic) => {
                panic.log("the policy panicked; the call is refused", Some(tool.name()), redactor);
                let error = CallError::new(ErrorKind::Internal, "the policy check failed");
                Err(error.not_started())
            }
        }
    }
}

#[cold]
fn no_form(tool: &ToolEntry, error: &NoForm) -> CallError {
    let message =
        format!("The grant of tool '{}' cannot be kept: {error}. The call was not run.", tool.name());
    CallError::new(ErrorKind::SandboxError, message).not_started()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;
    use toolyard_core::{Grant, ToolSpec};

    /// A policy that clears the tools when it is dropped.
    struct Last(Weak<RulesInForce>);

    impl RuntimePolicy for Last {
        fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
            unreachable!("nobody asks")
        }
    }

    impl Drop for Last {
        fn drop(&mut self) {
            let rules = self.0.upgrade().unwrap();
            let Ok(()) = rules.change_tools(&mut |tools| {
                tools.clear();
                Ok::<_, Infallible>(())
            });
        }
    }

    /// V1: an embedder's policy that is dropped finds the new rules in force, and no lock held.
    #[test]
    fn a_policy_that_goes_may_change_the_tools() {
        let rules = Arc::new(RulesInForce::default());
        assert_eq!(rules.set_policy(Arc::new(Last(Arc::downgrade(&rules))), None, |_| {}), 2);
        assert_eq!(rules.set_policy(Arc::new(AllowAll), None, |_| {}), 3);
        assert_eq!(rules.version(), 3);
    }
}
