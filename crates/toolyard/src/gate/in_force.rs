//! The policy in force, and which it is.

use arc_swap::{ArcSwap, Guard};
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Notify;
use toolyard_core::{CallError, Caller, Denied, ErrorKind, Grant, RuntimePolicy, ToolSpec, wording};

/// The number of a policy in its engine, from 1.
pub(crate) type PolicyVersion = u32;

/// A policy's yes, and which policy it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) grant: Grant,
    pub(crate) policy: PolicyVersion,
}

/// The policy in force. It may be put in place of another at any time; calls that were allowed by an older one are looked
/// at again before they go on (V1).
pub(crate) struct InForce {
    current: ArcSwap<Versioned>,
    /// The version of `current`, for those who only ask whether it is still theirs.
    version: AtomicU32,
    changing: Mutex<()>,
    /// Wakes in the order in which they came: a watch would in an order by chance that no seed fixes.
    changed: Arc<Notify>,
}

/// A policy and which it is.
pub(crate) struct Versioned {
    policy: Arc<dyn RuntimePolicy>,
    version: PolicyVersion,
}

impl InForce {
    pub(crate) fn new(policy: Arc<dyn RuntimePolicy>) -> Self {
        let version = 1;
        Self {
            current: ArcSwap::from_pointee(Versioned { policy, version }),
            version: AtomicU32::new(version),
            changing: Mutex::new(()),
            changed: Arc::default(),
        }
    }

    /// Puts another policy in force; its version.
    pub(crate) fn set(&self, policy: Arc<dyn RuntimePolicy>) -> PolicyVersion {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version() + 1;
        self.current.store(Arc::new(Versioned { policy, version }));
        // After the policy: who sees the number finds what it stands for, or a later one.
        self.version.store(version, Ordering::Release);
        self.changed.notify_waiters();
        version
    }

    /// The version in force.
    pub(crate) fn version(&self) -> PolicyVersion {
        self.version.load(Ordering::Acquire)
    }

    /// Tells when another is in force, from each `notified()` on.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// The policy in force at this moment: asked for once by who asks it of many calls.
    pub(crate) fn current(&self) -> Guard<Arc<Versioned>> {
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
