//! The layers around a tool (KT-7).

use crate::tasks::{Contained, Panic, caught};
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::{Abort, Caller, ToolLayer, ToolSpec};

/// The layers around a tool, the outermost first; at least one.
pub(crate) struct Layers(Contained<Vec<Arc<dyn ToolLayer>>>);

/// Why a layer has refused a call.
pub(crate) enum LayerRefusal {
    Aborted(Abort),
    Panicked(Panic),
}

impl Layers {
    /// The engine's layers around the tool's own; `None` if there are none.
    pub(crate) fn of(outer: &[Arc<dyn ToolLayer>], own: Vec<Arc<dyn ToolLayer>>) -> Option<Box<Self>> {
        let all: Vec<_> = outer.iter().cloned().chain(own).collect();
        (!all.is_empty()).then(|| Box::new(Self(Contained::new(all))))
    }

    /// The layers, the outermost first.
    pub(crate) fn all(&self) -> &[Arc<dyn ToolLayer>] {
        &self.0
    }

    /// What the layers make of a call's arguments; `None` if they leave them.
    pub(crate) fn arguments(
        &self,
        tool: &ToolSpec,
        caller: &Caller<'_>,
        args: &Value,
    ) -> Result<Option<Value>, LayerRefusal> {
        let mut replaced = None;
        for layer in self.all() {
            let args = replaced.as_ref().unwrap_or(args);
            let given = caught(|| layer.arguments(tool, caller, args)).map_err(LayerRefusal::Panicked)?;
            if let Some(given) = given.map_err(LayerRefusal::Aborted)? {
                replaced = Some(given);
            }
        }
        Ok(replaced)
    }
}
