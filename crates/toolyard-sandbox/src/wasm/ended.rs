//! How a module ended, as the result of its call.

use crate::printed;
use toolyard_core::{OutputKind, ToolError, ToolOutput};
use toolyard_program::Exit;
use toolyard_wasm::{End, Ended};

/// The result of a call that ended so (SB-2, SB-8).
///
/// # Errors
/// [`ToolError`], unless the module said itself that it succeeded or failed.
pub(super) fn result(ended: Ended, kind: OutputKind) -> Result<ToolOutput, ToolError> {
    let Ended { end, refused, output, errors, .. } = ended;
    let mut errors = errors.into_text();
    if let (End::Exited(1..), Some(limit)) = (&end, refused) {
        // It failed by itself, and most likely for this.
        errors.push_str(&format!("[the module was refused more than its limit of {}]\n", limit.as_str()));
    }
    let ended = |exit| toolyard_program::Ended { exit, output: printed::kept(output), errors };
    match end {
        End::Exited(code) => ended(Exit::Code(code)).result(kind),
        End::Trapped(what) => ended(Exit::Trap(what)).result(kind),
        End::Limit(limit) => ended(Exit::Limit(limit.as_str())).result(kind),
        End::Stopped => Err(ended(Exit::Code(0)).stopped(ToolError::cancelled("the module was stopped"))),
    }
}
