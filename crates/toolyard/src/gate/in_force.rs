//! What is in force: the tools there are, the policy, and which policy it is.

use crate::registry::Table;
use arc_swap::{ArcSwap, Guard};
use serde_json::Value;
use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Notify;
use toolyard_core::{
    AllowAll, CallError, Caller, Denied, ErrorKind, Grant, RuntimePolicy, ToolSpec, wording,
};

/// The number of a policy in its engine, from 1.
pub(crate) type PolicyVersion = u32;

/// A policy's yes, and which policy it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) grant: Grant,
    pub(crate) policy: PolicyVersion,
}

/// The rules in force. They may be put in place of others at any time; calls that were allowed by an older policy are
/// looked at again before they go on (V1).
pub(crate) struct InForce {
    current: ArcSwap<Rules>,
    /// The version of the current policy, for those who only ask whether it is still theirs.
    version: AtomicU32,
    /// Held by the one who changes the rules; readers never wait.
    changing: Mutex<()>,
    /// Wakes in the order in which they came: a watch would in an order by chance that no seed fixes.
    changed: Arc<Notify>,
}

/// What the gate goes by. A batch looks at all of it once.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) tools: Table,
    pub(crate) policy: Versioned,
}

/// A policy and which it is.
#[derive(Clone)]
pub(crate) struct Versioned {
    policy: Arc<dyn RuntimePolicy>,
    version: PolicyVersion,
}

impl Default for InForce {
    /// No tools, all of which are allowed.
    fn default() -> Self {
        Self::new(Arc::new(AllowAll))
    }
}

impl InForce {
    /// This policy, and no tools.
    pub(crate) fn new(policy: Arc<dyn RuntimePolicy>) -> Self {
        let version = 1;
        let rules = Rules { tools: Table::default(), policy: Versioned { policy, version } };
        Self {
            current: ArcSwap::from_pointee(rules),
            version: AtomicU32::new(version),
            changing: Mutex::new(()),
            changed: Arc::default(),
        }
    }

    /// Applies `change` to a copy of the rules and puts it in force, unless it fails.
    fn change<T, E>(&self, change: impl FnOnce(&mut Rules) -> Result<T, E>) -> Result<T, E> {
        let (done, before) = {
            // A change that unwinds has put nothing in force.
            let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = Rules::clone(&self.current());
            let done = change(&mut next)?;
            let version = next.policy.version;
            let before = self.current.swap(Arc::new(next));
            // After the policy: who sees the number finds what it stands for, or a later one.
            self.version.store(version, Ordering::Release);
            (done, before)
        };
        drop(before); // not under the lock: a tool or a policy that goes may change the rules again
        Ok(done)
    }

    /// Puts other tools in force, unless `change` fails.
    pub(crate) fn change_tools<T, E>(&self, change: impl FnOnce(&mut Table) -> Result<T, E>) -> Result<T, E> {
        self.change(|rules| change(&mut rules.tools))
    }

    /// Puts another policy in force; its version.
    pub(crate) fn set_policy(&self, policy: Arc<dyn RuntimePolicy>) -> PolicyVersion {
        let Ok(version) = self.change(|rules| {
            let version = rules.policy.version + 1;
            rules.policy = Versioned { policy, version };
            Ok::<_, Infallible>(version)
        });
        self.changed.notify_waiters();
        version
    }

    /// The version of the policy in force.
    pub(crate) fn version(&self) -> PolicyVersion {
        self.version.load(Ordering::Acquire)
    }

    /// Tells when another policy is in force, from each `notified()` on.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// The rules in force at this moment: asked for once by who goes by them for many calls.
    pub(crate) fn current(&self) -> Guard<Arc<Rules>> {
        self.current.load()
    }
}

impl Versioned {
    /// Asks the policy; what it grants, and its version.
    pub(crate) fn ask(
        &self,
        tool: &ToolSpec,
        args: &Value,
        caller: &Caller<'_>,
    ) -> Result<Allowed, CallError> {
        let answer = catch_unwind(AssertUnwindSafe(|| self.policy.check(tool, args, caller)));
        match answer {
            Ok(Ok(grant)) => Ok(Allowed { grant, policy: self.version }),
            Ok(Err(Denied::Disabled)) => {
                Err(CallError::new(ErrorKind::PermissionDenied, wording::disabled_by_policy(&tool.name)))
            }
            Ok(Err(Denied::Because(why))) => Err(CallError::new(ErrorKind::PermissionDenied, why)),
            Err(_) => {
                tracing::error!(tool = tool.name, "the policy panicked; the call is refused");
                let error = CallError::new(ErrorKind::Internal, "the policy could not be asked");
                Err(error.not_started())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;

    /// A policy that takes the tools with it when it goes.
    struct Last(Weak<InForce>);

    impl RuntimePolicy for Last {
        fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
            unreachable!("nobody asks")
        }
    }

    impl Drop for Last {
        fn drop(&mut self) {
            let rules = self.0.upgrade().unwrap();
            let Ok(()) = rules.change_tools(|tools| {
                tools.clear();
                Ok::<_, Infallible>(())
            });
        }
    }

    /// V1: what an embedder's policy does when it goes finds the rules that are in force by then, and no lock taken.
    #[test]
    fn a_policy_that_goes_may_change_the_tools() {
        let rules = Arc::new(InForce::default());
        assert_eq!(rules.set_policy(Arc::new(Last(Arc::downgrade(&rules)))), 2);
        assert_eq!(rules.set_policy(Arc::new(AllowAll)), 3);
        assert_eq!(rules.version(), 3);
    }
}
