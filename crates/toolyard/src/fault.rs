//! Deliberate faults, to prove that the simulation finds them. Compiled in only with `--cfg toolyard_faults`.

use std::{cell::Cell, fmt, str::FromStr};

/// A deliberate fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A waiter that has aged holds units back although it cannot have its lease.
    AgingHoldsWithoutLease,
    /// The permit of a cancelled call is never released.
    PermitLeakedOnCancel,
    /// A parked handler keeps the serial lease to itself.
    LeaseNotLent,
    /// A run starts before the previous one is quiescent.
    BarrierSkipped,
    /// Results are returned in the order in which calls end.
    ResultsByCompletion,
    /// A call's end is announced twice.
    SecondEnd,
    /// A handler keeps its units while it awaits its own calls.
    PermitHeldWhileNested,
    /// Sessions do not take turns.
    FairnessOff,
    /// A call joins a flight whatever leases its ancestors hold.
    JoinUnderSerial,
    /// The followers of a cancelled leader are never notified.
    LeaderCancelHangs,
    /// A key is reserved only after the permits are granted.
    KeyAfterQueue,
    /// A call that must not run twice is retried.
    RetryNonIdempotent,
    /// A call that waits for its next attempt keeps its permits.
    PermitHeldInBackoff,
    /// The slot of a cancelled probe is never released.
    ProbeSlotLeaked,
    /// The budget of a call that never started is not refunded.
    RefundLost,
    /// A call that an older policy allowed, or a person approved under it, proceeds whatever the policy in force
    /// says.
    ApprovalNotRechecked,
    /// A call holds permits while its approval is pending, if there are any.
    PermitHeldInApproval,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 17] = [
        Self::AgingHoldsWithoutLease,
        Self::PermitLeakedOnCancel,
        Self::LeaseNotLent,
        Self::BarrierSkipped,
        Self::ResultsByCompletion,
        Self::SecondEnd,
        Self::PermitHeldWhileNested,
        Self::FairnessOff,
        Self::JoinUnderSerial,
        Self::LeaderCancelHangs,
        Self::KeyAfterQueue,
        Self::RetryNonIdempotent,
        Self::PermitHeldInBackoff,
        Self::ProbeSlotLeaked,
        Self::RefundLost,
        Self::ApprovalNotRechecked,
        Self::PermitHeldInApproval,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AgingHoldsWithoutLease => "aging_holds_without_lease",
            Self::PermitLeakedOnCancel => "permit_leaked_on_cancel",
            Self::LeaseNotLent => "lease_not_lent",
            Self::BarrierSkipped => "barrier_skipped",
            Self::ResultsByCompletion => "results_by_completion",
            Self::SecondEnd => "second_end",
            Self::PermitHeldWhileNested => "permit_held_while_nested",
            Self::FairnessOff => "fairness_off",
            Self::JoinUnderSerial => "join_under_serial",
            Self::LeaderCancelHangs => "leader_cancel_hangs",
            Self::KeyAfterQueue => "key_after_queue",
            Self::RetryNonIdempotent => "retry_non_idempotent",
            Self::PermitHeldInBackoff => "permit_held_in_backoff",
            Self::ProbeSlotLeaked => "probe_slot_leaked",
            Self::RefundLost => "refund_lost",
            Self::ApprovalNotRechecked => "approval_not_rechecked",
            Self::PermitHeldInApproval => "permit_held_in_approval",
        }
    }

    /// Whether this thread's engines have this fault.
    pub fn is_on(self) -> bool {
        CHOSEN.get() == Some(self)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown fault name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault '{0}'")]
pub struct NoSuchFault(pub String);

impl FromStr for Fault {
    type Err = NoSuchFault;

    fn from_str(name: &str) -> Result<Self, NoSuchFault> {
        let fault = Self::ALL.into_iter().find(|fault| fault.name() == name);
        fault.ok_or_else(|| NoSuchFault(name.to_owned()))
    }
}

thread_local! {
    static CHOSEN: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Sets or clears the fault of the engines that run on this thread.
pub fn set(fault: Option<Fault>) {
    CHOSEN.set(fault);
}
