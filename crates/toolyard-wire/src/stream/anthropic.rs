//! Anthropic streams: `message_start`, then per block `content_block_start`, fragments (`input_json_delta`, `text_delta`) and
//! `content_block_stop`, then `message_stop`.

use super::{Assemble, index};
use crate::{
    DecodeError,
    decode::{is_text_block, tool_use},
    draft::{Draft, cut_arguments},
    found::Found,
    json::{self, Fields},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The open blocks of a message.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// By index.
    open: BTreeMap<u64, Open>,
    /// Whether a message has started and not stopped.
    in_message: bool,
}

#[derive(Debug)]
enum Open {
    /// A call, with the text of its input so far.
    Call(Draft, String),
    /// A text block, with what it has so far.
    Text(Fields),
}

impl Assemble for Blocks {
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError> {
        let mut event = json::object(event, "the event")?;
        let kind = json::text(&event, "type").to_owned();
        match kind.as_str() {
            // Two answers got into one stream: blocks of the same index would run into each other.
            "message_start" if std::mem::replace(&mut self.in_message, true) => {
                Err(DecodeError::SecondMessage)
            }
            "message_stop" => {
                self.in_message = false;
                Ok(())
            }
            "content_block_start" => self.start(&mut event, out),
            "content_block_delta" => self.delta(&mut event),
            "content_block_stop" => self.stop(&mut event, out),
            _ => Ok(()),
        }
    }

    fn cut(&mut self, out: &mut Found) {
        std::mem::take(&mut self.open).into_values().for_each(|open| open.cut(out));
    }
}

impl Open {
    /// Opens a block, if it is a call or text.
    fn new(block: Fields) -> Option<Self> {
        if is_text_block(&block) {
            return Some(Self::Text(block));
        }
        tool_use(block, false).map(|draft| Self::Call(draft, String::new()))
    }

    fn extend(&mut self, delta: &mut Fields) {
        match self {
            Self::Call(_, text) => text.push_str(json::text(delta, "partial_json")),
            Self::Text(block) => {
                if let Some(Value::String(text)) = block.get_mut("text") {
                    text.push_str(json::text(delta, "text"));
                }
                if let Some(citation) = json::take(delta, "citation") {
                    cite(block, citation);
                }
            }
        }
    }

    fn complete(self, out: &mut Found) {
        match self {
            Self::Call(mut draft, text) => {
                // Without fragments the input is the one that came with the start: `{}`, or the complete input.
                if !text.is_empty() {
                    draft.arguments = text.into();
                }
                out.push(draft);
            }
            Self::Text(block) => out.push_text(Value::Object(block)),
        }
    }

    fn cut(self, out: &mut Found) {
        match self {
            Self::Call(draft, text) => {
                let arguments = cut_arguments(Some(Value::String(text)));
                out.push(Draft { arguments, ..draft });
            }
            Self::Text(block) => out.push_text(Value::Object(block)),
        }
    }
}

fn cite(block: &mut Fields, citation: Value) {
    match block.get_mut("citations") {
        Some(Value::Array(citations)) => citations.push(citation),
        _ => drop(block.insert("citations".to_owned(), Value::Array(vec![citation]))),
    }
}

impl Blocks {
    fn start(&mut self, event: &mut Fields, out: &mut Found) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        if let Some(Value::Object(block)) = json::take(event, "content_block")
            && let Some(open) = Open::new(block)
        {
            // The block before never ended: the server started over.
            let before = self.open.insert(at, open);
            before.into_iter().for_each(|before| before.cut(out));
        }
        Ok(())
    }

    fn delta(&mut self, event: &mut Fields) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        if let Some(Value::Object(delta)) = event.get_mut("delta")
            && let Some(open) = self.open.get_mut(&at)
        {
            open.extend(delta);
        }
        Ok(())
    }

    fn stop(&mut self, event: &mut Fields, out: &mut Found) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        self.open.remove(&at).into_iter().for_each(|open| open.complete(out));
        Ok(())
    }
}
