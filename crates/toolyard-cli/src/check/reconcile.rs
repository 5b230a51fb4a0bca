//! Tools that are to tell what became of calls, and cannot (JR-6).

use crate::setup::Setup;
use toolyard::Engine;

/// A warning for each tool whose `reconcile` names one that is not there, or that does not only read.
pub(super) fn warnings(setup: &Setup, engine: &Engine) -> Vec<String> {
    let of_tool = |(tool, asked): (&String, &String)| {
        let why = match engine.registry().get(asked) {
            None if setup.is_missing(asked) => return None,
            None => "there is no such tool",
            Some(entry) if entry.spec().side_effects.is_read_only() && !entry.spec().recursive => {
                return None;
            }
            Some(_) => "that tool does not only read",
        };
        Some(format!(
            "warning: tool '{tool}': reconcile asks '{asked}', but {why}: its calls that are cut off will be interrupted"
        ))
    };
    let all = setup.config.reconciles.0.iter().map(|(tool, reconcile)| (tool, &reconcile.tool));
    all.filter_map(of_tool).collect()
}
