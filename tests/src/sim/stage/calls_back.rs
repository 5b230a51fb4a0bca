//! Destructors that use the engine while it drops their values.

use super::{Stage, policy};
use crate::sim::{
    journal::Fact,
    program::{CallBack, call_id},
};
use futures::FutureExt as _;
use std::sync::{Arc, Weak, atomic::Ordering};
use toolyard::{Engine, ForkPolicy, Session};

/// How often the destructors of one run do something: putting a policy in force drops another one.
const CALL_BACKS_MAX: u64 = 20;

/// The engine and its sessions, for destructors.
pub(in crate::sim) struct Reachable {
    engine: Engine,
    sessions: Vec<Session>,
}

/// A destructor that uses the engine.
pub(super) struct OnDrop {
    stage: Weak<Stage>,
    does: CallBack,
}

impl OnDrop {
    pub(super) fn new(stage: &Arc<Stage>, does: CallBack) -> Self {
        Self { stage: Arc::downgrade(stage), does }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(stage) = self.stage.upgrade() {
            stage.call_back(self.does);
        }
    }
}

impl Stage {
    /// From now on, destructors reach these.
    pub(in crate::sim) fn open(&self, engine: &Engine, sessions: &[Session]) {
        let reachable = Arc::new(Reachable { engine: engine.clone(), sessions: sessions.to_vec() });
        *self.reachable.lock() = Some(reachable);
    }

    /// From now on, destructors reach nothing.
    pub(in crate::sim) fn close(&self) {
        let reachable = self.reachable.lock().take();
        drop(reachable); // outside of the lock
    }

    fn call_back(self: &Arc<Self>, does: CallBack) {
        let reachable = self.reachable.lock().clone();
        let Some(reachable) = reachable else { return };
        if self.call_backs.fetch_add(1, Ordering::Relaxed) >= CALL_BACKS_MAX {
            return;
        }
        let Reachable { engine, sessions } = &*reachable;
        let note = |fact| self.journal.note(fact);
        note(Fact::CalledBack(does));
        match does {
            CallBack::Look => {
                let (gauges, budgets) = (engine.gauges(), sessions.iter().map(Session::budget_left).count());
                // It is answered by the pools, which a destructor cannot wait for.
                let status = engine.status().now_or_never();
                drop((gauges.breakers(), budgets, engine.breakers(), status));
            }
            CallBack::CancelCall(root, node) => {
                if let Some(session) = sessions.get(root) {
                    note(Fact::CancelCall(node));
                    let found = session.cancel_call(&call_id(node));
                    note(Fact::CallCancelled(node, found));
                }
            }
            CallBack::CancelCalls(at) => {
                if let Some(session) = sessions.get(at) {
                    note(Fact::CancelCalls(at));
                    session.cancel_calls();
                }
            }
            CallBack::SetPolicy(at) => {
                if let Some(plan) = self.program.policies.get(at) {
                    note(Fact::SetPolicy(at));
                    engine.set_policy(policy::Planned::new(self, plan));
                }
            }
            CallBack::Fork(at) => {
                let fork = sessions.get(at).map(|session| session.fork(ForkPolicy::default()));
                drop(fork.expect("a session of the program"));
            }
        }
    }
}
