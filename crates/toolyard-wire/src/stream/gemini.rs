//! Gemini streams: each event is a response with parts, and most calls come whole in one part.
//!
//! ```text
//!   {"name":"f","args":{…}}                          a whole call
//!   {"name":"f","willContinue":true}                 a call begins
//!   {"partialArgs":[…],"willContinue":true} …        its arguments, piece by piece
//!   {}                                               it ends
//! ```

use super::{Assemble, partial_args::PartialArgs};
use crate::{
    DecodeError,
    bounds::PARTIAL_HOLES_MAX,
    decode::{function_call, text_part},
    draft::{Draft, unclosed},
    found::Found,
    json::{self, Fields},
};
use serde_json::Value;

/// The open call whose arguments come in pieces, of which there is at most one at a time.
#[derive(Debug)]
pub(super) struct Parts {
    open: Option<Open>,
    holes: usize,
}

impl Default for Parts {
    fn default() -> Self {
        Self { open: None, holes: PARTIAL_HOLES_MAX }
    }
}

#[derive(Debug)]
struct Open {
    draft: Draft,
    args: PartialArgs,
}

impl Assemble for Parts {
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError> {
        let mut event = json::object(event, "the event")?;
        let Some(Value::Object(mut candidate)) = json::take_first(&mut event, "candidates")? else {
            return Ok(());
        };
        if json::take(&mut candidate, "index").is_some_and(|index| index != 0) {
            return Ok(());
        }
        let Some(Value::Object(mut content)) = json::take(&mut candidate, "content") else {
            return Ok(());
        };
        const PLACE: &str = "candidates[0].content.parts";
        for part in json::items(json::take(&mut content, "parts"), PLACE)? {
            let mut part = json::object(part, PLACE)?;
            if let Some(call) = json::take_either(&mut part, "functionCall", "function_call") {
                self.piece(json::object(call, "functionCall")?, part, out)?;
            } else {
                text_part(part).into_iter().for_each(|part| out.push_text(part));
            }
        }
        Ok(())
    }

    fn cut(&mut self, out: &mut Found) {
        out.extend(self.open.take().map(Open::cut));
    }
}

impl Parts {
    fn piece(&mut self, mut call: Fields, part: Fields, out: &mut Found) -> Result<(), DecodeError> {
        let pieces = json::take_either(&mut call, "partialArgs", "partial_args");
        let more = json::take_either(&mut call, "willContinue", "will_continue");
        let more = more == Some(Value::Bool(true));
        let pieces = json::items(pieces, "functionCall.partialArgs")?;
        if call.contains_key("name") {
            // This is a new call, so one that is still open will not be continued.
            self.cut(out);
            if !more && pieces.is_empty() {
                out.push(function_call(call, part));
                return Ok(());
            }
            self.open = Some(Open::new(function_call(call, part)));
        } else if self.open.is_none() {
            return self.stray(call, part, pieces, out);
        } else if let Some(open) = &mut self.open {
            open.draft.passthrough.extend(part);
        }
        if let Some(open) = &mut self.open {
            open.args.extend(pieces, &mut self.holes)?;
        }
        if !more {
            out.extend(self.open.take().map(Open::complete));
        }
        Ok(())
    }

    /// A piece without a name while no call is open. A wholly empty one only ends a call that has already ended;
    /// anything else is a call whose name is missing.
    fn stray(
        &mut self,
        call: Fields,
        part: Fields,
        pieces: Vec<Value>,
        out: &mut Found,
    ) -> Result<(), DecodeError> {
        if call.is_empty() && pieces.is_empty() {
            return Ok(());
        }
        let mut open = Open::new(function_call(call, part));
        open.args.extend(pieces, &mut self.holes)?;
        out.push(open.complete());
        Ok(())
    }
}

impl Open {
    /// Opens a call. The pieces add to the `args`, if any, that came with its first part.
    fn new(draft: Draft) -> Self {
        let args = PartialArgs::new(draft.arguments.to_value());
        Self { draft, args }
    }

    fn complete(self) -> Draft {
        let Self { mut draft, args } = self;
        draft.arguments = args.into_value().into();
        draft
    }

    fn cut(self) -> Draft {
        let Self { mut draft, args } = self;
        draft.arguments = unclosed(&args.into_value());
        draft
    }
}
