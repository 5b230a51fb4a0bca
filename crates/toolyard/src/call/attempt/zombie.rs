//! Handlers that were given up and could not be dropped.

use crate::{
    call::{in_flight::CallRef, life::LateResult, nested::Report},
    config::ZOMBIE_WAIT,
};
use futures::{FutureExt, future::FusedFuture as _};
use std::pin::pin;
use tokio::sync::oneshot;
use toolyard_admission::{Held, UnitKind};
use toolyard_core::ToolClass;

/// Whether a zombie keeps a unit (SC-6): a mutating one keeps its tool and class units, because it may still change
/// things; a reading one keeps only
/// its thread.
pub(crate) fn a_zombie_keeps(class: ToolClass, unit: UnitKind) -> bool {
    match unit {
        UnitKind::Session | UnitKind::Tree => false,
        UnitKind::Threads => true,
        UnitKind::Tool(_) | UnitKind::Class(_) => class != ToolClass::Read,
    }
}

/// A handler that was given up and could not be dropped. This is dropped when the handler has stopped, or when there
/// is nothing left to wait for: the call is then quiescent, if all calls under it are.
pub(crate) struct Zombie {
    call: CallRef,
    attempt: u32,
    /// What it still holds.
    keeps: Option<Held>,
}

impl Zombie {
    pub(crate) fn new(call: CallRef, attempt: u32, keeps: Held) -> Self {
        call.at().work().entry.guard().zombie_began();
        Self { call, attempt, keeps: Some(keeps) }
    }

    /// Waits until the handler has stopped.
    pub(crate) async fn watch(mut self, mut stopped: oneshot::Receiver<bool>) {
        let call = self.call.clone();
        let CallRef { batch, .. } = &call;
        let guard = call.at().work().entry.guard();
        tracing::warn!(tool = &*call.at().call().name, "an abandoned handler is still running");
        let admission = &batch.session.engine.admission;
        let mark = admission.mark();
        let mut waited = pin!(tokio::time::sleep(ZOMBIE_WAIT).fuse());
        let mut released = pin!(guard.zombies_released().fuse());
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut stopped => break ended,
                // Calls that arrive later have a timer of their own.
                () = &mut waited, if !waited.is_terminated() => admission.expire_behind_zombies(mark),
                () = &mut released, if !released.is_terminated() => self.give_back(),
            }
        };
        // A dropped sender means that its thread is lost: there is nothing left to wait for.
        let ok = ended.unwrap_or(false);
        call.at().late_result(LateResult { attempt: self.attempt, ok });
    }

    /// Gives back what it holds: for everything that waits, the call is quiescent.
    fn give_back(&mut self) {
        let Some(kept) = self.keeps.take() else { return };
        let call = self.call.at();
        call.work().entry.guard().zombie_ended();
        let report = match call.parking() {
            Some(_) => self.call.zombie_stopped(kept),
            None => {
                call.engine().admission.zombie_gone(kept);
                Some(Report::ListedQuiescent)
            }
        };
        if let Some(report) = report {
            call.report_up(report);
        }
    }
}

impl Drop for Zombie {
    fn drop(&mut self) {
        self.give_back();
    }
}
