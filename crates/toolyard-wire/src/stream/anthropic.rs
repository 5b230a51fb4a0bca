//! Anthropic streams: `message_start`, then per block `content_block_start`, `input_json_delta` fragments and
//! `content_block_stop`, then `message_stop`.

use super::{Assemble, index};
use crate::{
    DecodeError,
    decode::tool_use,
    draft::{Draft, cut_arguments},
    json::{self, Fields},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The open `tool_use` blocks of a message.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// By index, with the text of their input so far.
    open: BTreeMap<u64, (Draft, String)>,
    /// Whether a message has started and not stopped.
    in_message: bool,
}

impl Assemble for Blocks {
    fn event(&mut self, event: Value, out: &mut Vec<Draft>) -> Result<(), DecodeError> {
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

    fn cut(&mut self, out: &mut Vec<Draft>) {
        out.extend(std::mem::take(&mut self.open).into_values().map(cut));
    }
}

fn cut((draft, text): (Draft, String)) -> Draft {
    let arguments = cut_arguments(Some(Value::String(text)));
    Draft { arguments, ..draft }
}

impl Blocks {
    fn start(&mut self, event: &mut Fields, out: &mut Vec<Draft>) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        if let Some(Value::Object(block)) = json::take(event, "content_block")
            && let Some(draft) = tool_use(block, false)
        {
            // The block before never ended: the server started over.
            let before = self.open.insert(at, (draft, String::new()));
            out.extend(before.map(cut));
        }
        Ok(())
    }

    fn delta(&mut self, event: &mut Fields) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        if let Some(Value::Object(delta)) = event.get("delta")
            && let Some((_, text)) = self.open.get_mut(&at)
        {
            text.push_str(json::text(delta, "partial_json"));
        }
        Ok(())
    }

    fn stop(&mut self, event: &mut Fields, out: &mut Vec<Draft>) -> Result<(), DecodeError> {
        let at = index(json::take(event, "index"), "index")?;
        if let Some((mut draft, text)) = self.open.remove(&at) {
            // Without fragments the input is the one that came with the start: `{}`, or the complete input.
            if !text.is_empty() {
                draft.arguments = text.into();
            }
            out.push(draft);
        }
        Ok(())
    }
}
