//! The calls of one model answer, and what must be known to answer them.

use crate::{Format, NameMap, draft::Draft, ids::Ids};
use std::sync::Arc;
use toolyard_core::{Batch, Call};

/// What one call was on the wire, as far as the call itself does not tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    /// The id to give back; `None` where none came.
    pub(crate) id: Option<Arc<str>>,
    /// The name to give back.
    pub(crate) name: Arc<str>,
    /// Whether it is a custom tool's call.
    pub(crate) custom: bool,
}

/// The calls of one model answer in order, with what must come back to the provider beside the results.
///
/// A call that came without an id has one here, unique in the message (`call_1`, …). It goes back only where
/// the format cannot do without: Gemini, which alone sends no ids, gets none.
///
/// # Examples
/// ```
/// use toolyard_wire::decode;
/// let message = decode(r#"{"parts":[{"functionCall":{"name":"now"}}]}"#, None)?;
/// assert_eq!(message.calls()[0].id.as_str(), "call_1");
/// assert_eq!(message.batch().len(), 1);
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Message {
    format: Format,
    calls: Vec<Call>,
    origins: Vec<Origin>,
    ids: Ids,
    cut: bool,
}

impl Message {
    /// A message of calls that were made by hand: each has its id, and none is a custom tool's.
    pub fn new(format: Format, calls: Vec<Call>) -> Self {
        let mut message = Self::empty(format);
        for call in calls {
            let origin = Origin { id: Some(call.id.as_str().into()), name: call.name.clone(), custom: false };
            message.ids.reserve(call.id.as_str());
            message.origins.push(origin);
            message.calls.push(call);
        }
        message
    }

    pub(crate) fn empty(format: Format) -> Self {
        Self { format, calls: Vec::new(), origins: Vec::new(), ids: Ids::default(), cut: false }
    }

    pub(crate) fn of(format: Format, drafts: Vec<Draft>) -> Self {
        let mut message = Self::empty(format);
        for id in drafts.iter().filter_map(|draft| draft.id.as_deref()) {
            message.ids.reserve(id);
        }
        for draft in drafts {
            message.push(draft);
        }
        message
    }

    /// Adds a call and returns it.
    pub(crate) fn push(&mut self, draft: Draft) -> &Call {
        let id = self.ids.internal(draft.id.as_deref());
        let mut call = Call::new(id, draft.name, draft.arguments);
        call.provider_id = draft.provider_id.map(Into::into);
        call.idempotency_key = draft.idempotency_key.map(Into::into);
        call.timeout = draft.timeout;
        call.passthrough = (!draft.rest.is_empty()).then(|| Box::new(draft.rest));
        self.origins.push(Origin {
            id: draft.id.map(Into::into),
            name: call.name.clone(),
            custom: draft.custom,
        });
        self.calls.push(call);
        &self.calls[self.calls.len() - 1]
    }

    pub(crate) fn set_cut(&mut self) {
        self.cut = true;
    }

    /// The format that the calls came in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The calls, in the order in which the model wrote them.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The calls as a batch for the engine. Copies ids, names and arguments by reference.
    pub fn batch(&self) -> Batch {
        Batch::new(self.calls.clone())
    }

    /// Whether there are no tool calls in this response: the model is done, or has only talked.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the stream broke off inside a call. That call is there with the text that had come, and the
    /// engine answers it `invalid_input`.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Gives the calls the names that the tools have here, where a [`NameMap`] had renamed them for the
    /// provider. Results go back under the provider's names all the same. A name that the map does not know
    /// stays.
    #[must_use]
    pub fn with_original_names(mut self, names: &NameMap) -> Self {
        for call in &mut self.calls {
            if let Some(original) = names.original(&call.name) {
                call.name = original.into();
            }
        }
        self
    }

    /// The calls, without what else is known of them.
    pub fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

impl PartialEq for Message {
    /// Equal by what came in; how ids would be made from here on does not count.
    fn eq(&self, other: &Self) -> bool {
        (self.format, self.cut) == (other.format, other.cut)
            && self.calls == other.calls
            && self.origins == other.origins
    }
}
