//! What an earlier life of the engine has done for a call (JR-5).

use crate::record::PastQuestion;
use toolyard_core::CallError;

/// What an earlier life of the engine has done for a call. The default is nothing.
#[derive(Default)]
pub(crate) struct Before {
    /// How often it has started its handler.
    pub(crate) attempts: u32,
    /// What the last attempt has ended with; `None` if that is not known.
    pub(crate) error: Option<Box<CallError>>,
    /// The question about it.
    pub(crate) question: Option<PastQuestion>,
}
