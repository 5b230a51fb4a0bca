//! A call's way through the layers around its tool, before the gate (KT-7).

use super::arguments;
use crate::{
    agent::Agent,
    tool::{LayerRefusal, Table},
};
use std::{borrow::Cow, sync::Arc};
use toolyard_core::{Arguments, Call, CallError, ErrorKind, wording};

/// What the layers made of a call.
pub(crate) enum Layered {
    /// Nothing, or the gate refuses it without them.
    Unchanged,
    /// It has other arguments now. These came with it.
    Changed(Arguments),
    Refused(CallError),
}

impl Layered {
    /// The call as it came.
    pub(crate) fn raw<'a>(&self, call: &'a Call) -> Cow<'a, Call> {
        match self {
            Self::Changed(arguments) => {
                let mut raw = call.clone();
                raw.arguments = arguments.clone();
                Cow::Owned(raw)
            }
            Self::Unchanged | Self::Refused(_) => Cow::Borrowed(call),
        }
    }
}

/// Replaces the arguments of a call by what the layers of its tool make of them. A call that the gate refuses before it looks
/// at them is left as it is.
#[cold]
#[inline(never)]
pub(crate) fn through_layers(call: &mut Call, tools: &Table, session: &Agent) -> Layered {
    let may_call = |entry: &&Arc<_>| session.sees(entry) && session.permissions.calls(entry);
    let Some(entry) = tools.get(&call.name).filter(may_call) else { return Layered::Unchanged };
    let Some(layers) = entry.layers() else { return Layered::Unchanged };
    let limits = &session.engine.limits;
    if arguments::bound(&call.arguments, limits.arguments_bytes_max).is_err() {
        return Layered::Unchanged;
    }
    let Ok(parsed) = arguments::parse(call, limits) else { return Layered::Unchanged };
    match layers.arguments(entry.spec(), &session.caller(), parsed.of(call)) {
        Ok(None) => Layered::Unchanged,
        Ok(Some(replaced)) => {
            let replaced = Arguments::Json(Arc::new(replaced));
            Layered::Changed(std::mem::replace(&mut call.arguments, replaced))
        }
        Err(LayerRefusal::Aborted(abort)) => {
            Layered::Refused(CallError::new(ErrorKind::Aborted, abort.message))
        }
        Err(LayerRefusal::Panicked(panic)) => {
            let redactor = session.engine.redactor.as_ref();
            panic.log("a layer panicked at the arguments of a call", Some(entry.name()), redactor);
            Layered::Refused(CallError::new(ErrorKind::Panic, wording::INTERNAL_FAILURE).not_started())
        }
    }
}
