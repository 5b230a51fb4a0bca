//! OpenAI Responses streams: `response.output_item.added`, fragments, `response.output_item.done`.
//!
//! The item that comes with `done` is complete, so fragments are kept only in case the stream breaks off.

use super::{Assemble, index};
use crate::{
    DecodeError,
    decode::{is_response_call, is_response_text, output_calls, output_item},
    draft::{Draft, cut_arguments, cut_custom_input},
    found::Found,
    json::{self, Fields},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The open items of one response, by `output_index`.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: BTreeMap<u64, Open>,
    /// Whether this response has already emitted a call.
    emitted: bool,
    /// Whether it has already emitted a text.
    emitted_text: bool,
}

#[derive(Debug)]
struct Open {
    item: Fields,
    text: String,
}

impl Assemble for Items {
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError> {
        let mut event = json::object(event, "the event")?;
        let kind = json::text(&event, "type").to_owned();
        match kind.as_str() {
            "response.created" => (self.emitted, self.emitted_text) = (false, false),
            "response.output_item.added" => self.added(&mut event, out)?,
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.output_text.delta"
            | "response.refusal.delta" => {
                self.delta(&mut event)?;
            }
            "response.output_item.done" => self.item_done(&mut event, out)?,
            "response.completed" => self.completed(&mut event, out)?,
            "response.failed" | "error" => return Err(failed(&event)),
            _ => {}
        }
        Ok(())
    }

    fn cut(&mut self, out: &mut Found) {
        let open = std::mem::take(&mut self.open);
        open.into_values().for_each(|open| open.cut(out));
    }
}

const INDEX: &str = "output_index";

impl Items {
    fn added(&mut self, event: &mut Fields, out: &mut Found) -> Result<(), DecodeError> {
        let at = index(json::take(event, INDEX), INDEX)?;
        if let Some(Value::Object(item)) = json::take(event, "item")
            && (is_response_call(&item) || is_response_text(&item))
        {
            let text = String::new();
            // The item before never ended: the server started over.
            let before = self.open.insert(at, Open { item, text });
            before.into_iter().for_each(|before| before.cut(out));
        }
        Ok(())
    }

    fn delta(&mut self, event: &mut Fields) -> Result<(), DecodeError> {
        let at = index(json::take(event, INDEX), INDEX)?;
        if let Some(open) = self.open.get_mut(&at) {
            open.text.push_str(json::text(event, "delta"));
        }
        Ok(())
    }

    fn item_done(&mut self, event: &mut Fields, out: &mut Found) -> Result<(), DecodeError> {
        let at = index(json::take(event, INDEX), INDEX)?;
        self.open.remove(&at);
        let Some(Value::Object(item)) = json::take(event, "item") else { return Ok(()) };
        if is_response_text(&item) {
            self.emitted_text = true;
            out.push_text(Value::Object(item));
        } else if let Some(draft) = output_item(item) {
            self.emitted = true;
            out.push(draft);
        }
        Ok(())
    }

    /// Takes the calls and texts from the final response, for servers that send no items before it.
    fn completed(&mut self, event: &mut Fields, out: &mut Found) -> Result<(), DecodeError> {
        if !self.emitted
            && let Some(Value::Object(response)) = json::take(event, "response")
        {
            let mut found = output_calls(response)?;
            if !found.drafts.is_empty() {
                self.open.clear();
            }
            if self.emitted_text {
                found.texts.clear();
            } else if !found.texts.is_empty() {
                self.open.retain(|_, open| !is_response_text(&open.item));
            }
            out.append(found);
        }
        (self.emitted, self.emitted_text) = (false, false);
        Ok(())
    }
}

fn failed(event: &Fields) -> DecodeError {
    let error = event.get("response").and_then(|response| response.get("error")).unwrap_or(&Value::Null);
    let message = error.get("message").or_else(|| event.get("message"));
    let message = message.and_then(Value::as_str).unwrap_or("no details given");
    DecodeError::Provider { message: message.replace(['\r', '\n'], " ") }
}

impl Open {
    fn cut(self, out: &mut Found) {
        let Self { mut item, text } = self;
        if is_response_text(&item) {
            item.insert("status".to_owned(), "incomplete".into());
            item.insert(
                "content".to_owned(),
                json!([{"type": "output_text", "text": text, "annotations": []}]),
            );
            return out.push_text(Value::Object(item));
        }
        let Some(draft) = output_item(item) else { return };
        let arguments =
            if draft.custom { cut_custom_input(&text) } else { cut_arguments(Some(Value::String(text))) };
        out.push(Draft { arguments, ..draft });
    }
}
