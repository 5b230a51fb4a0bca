//! OpenAI Chat streams: fragments in `choices[0].delta.tool_calls`, joined by `index`.
//!
//! A call is complete when the choice has a finish reason. It is emitted earlier if that is safe: another call has
//! begun, and its own arguments are a complete JSON value, which no fragment can continue.

use super::{Assemble, index};
use crate::{
    DecodeError,
    draft::{Draft, arguments, custom_input, cut_arguments, cut_custom_input},
    found::Found,
    json::{self, Fields},
};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// The calls of a stream that are not emitted yet, in call order.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    open: VecDeque<Open>,
    /// How many were emitted.
    emitted: usize,
    /// For each index, the call that began last under it, by its number among all calls of the stream.
    latest: HashMap<u64, usize>,
    /// Index and id of the call that was emitted last, to recognise its late fragments.
    last: Option<(u64, Option<String>)>,
}

#[derive(Debug, Default)]
struct Open {
    index: u64,
    id: Option<String>,
    /// Whether a fragment had an empty id, which some servers send in place of none.
    has_empty_id: bool,
    name: String,
    text: String,
    custom: bool,
    passthrough: Fields,
    /// Whether the last check found the arguments complete, so that no fragment can continue them.
    whole: bool,
}

impl Assemble for Deltas {
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError> {
        let mut event = json::object(event, "the event")?;
        let Some(choice) = json::take_first(&mut event, "choices")? else {
            return Ok(());
        };
        let mut choice = json::object(choice, "choices[0]")?;
        if json::take(&mut choice, "index").is_some_and(|index| index != 0) {
            return Ok(());
        }
        if let Some(Value::Object(mut delta)) = json::take(&mut choice, "delta") {
            let content = json::take(&mut delta, "content").filter(|content| !content.is_null());
            content.into_iter().for_each(|content| out.push_text(content));
            const PLACE: &str = "choices[0].delta.tool_calls";
            for item in json::items(json::take(&mut delta, "tool_calls"), PLACE)? {
                self.fragment(json::object(item, PLACE)?, out)?;
            }
        }
        match json::text(&choice, "finish_reason") {
            "" => {}
            // The model ran out of tokens inside its last call.
            "length" => self.cut_last(out),
            _ => self.done(out),
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Found) {
        while let Some(open) = self.open.pop_front() {
            self.emit(open, out);
        }
    }

    fn cut(&mut self, out: &mut Found) {
        self.emitted += self.open.len();
        out.extend(self.open.drain(..).map(Open::cut));
    }
}

impl Deltas {
    fn fragment(&mut self, mut item: Fields, out: &mut Found) -> Result<(), DecodeError> {
        let at = json::take(&mut item, "index");
        let is_empty_id = json::is_empty_text(&item, "id");
        let id = json::take_text(&mut item, "id");
        json::take(&mut item, "type");
        let custom = json::take(&mut item, "custom");
        let is_custom = custom.is_some();
        let mut inner = match json::take(&mut item, "function").or(custom) {
            Some(Value::Object(inner)) => inner,
            _ => Fields::new(),
        };
        let name = json::take_text(&mut inner, "name");
        let text = fragment_text(&mut inner);
        let place = self.place(at, id.as_deref(), name.is_some())?;
        if name.is_none() && text.trim_ascii().is_empty() && self.is_late(place, id.as_deref()) {
            return Ok(());
        }
        let open = self.open_at(place, id, out);
        // Servers that repeat the name on every fragment send all of it each time.
        open.name = name.unwrap_or(std::mem::take(&mut open.name));
        open.custom |= is_custom;
        open.has_empty_id |= is_empty_id;
        open.text.push_str(&text);
        open.whole = false;
        open.passthrough.extend(item);
        Ok(())
    }

    /// The index of a fragment. A fragment without one is a whole call or continues the last one.
    fn place(&self, at: Option<Value>, id: Option<&str>, named: bool) -> Result<u64, DecodeError> {
        const PLACE: &str = "choices[0].delta.tool_calls[].index";
        if at.is_some() {
            return index(at, PLACE);
        }
        let is_next = |open: &Open| match id {
            Some(id) => open.id.as_deref() != Some(id),
            None => named && !open.text.is_empty(),
        };
        let place = self.open.back().map_or(0, |open| open.index + u64::from(is_next(open)));
        index(Some(place.into()), PLACE)
    }

    /// Whether a fragment without text belongs to the call that was emitted last.
    fn is_late(&self, place: u64, id: Option<&str>) -> bool {
        let emitted = self.last.as_ref().filter(|(index, _)| *index == place);
        let same = emitted.is_some_and(|(_, emitted)| id.is_none() || emitted.as_deref() == id);
        same && self.position(place).is_none()
    }

    /// The position of the call that began last under an index, if it is still open.
    fn position(&self, index: u64) -> Option<usize> {
        self.latest.get(&index)?.checked_sub(self.emitted)
    }

    /// The open call of an index. A different id under the same index is a different call, because some servers
    /// number all their calls 0.
    fn open_at(&mut self, index: u64, id: Option<String>, out: &mut Found) -> &mut Open {
        let same = |open: &Open| id.is_none() || open.id.is_none() || open.id == id;
        let found = self.position(index).filter(|at| same(&self.open[*at]));
        let position = found.unwrap_or_else(|| self.begin(index, out));
        let open = &mut self.open[position];
        if id.is_some() {
            open.id = id;
        }
        open
    }

    /// Begins a call, and emits the calls at the front that no fragment can continue.
    fn begin(&mut self, index: u64, out: &mut Found) -> usize {
        // Only the previous call is checked: parsing the others again with each new call would be quadratic.
        if let Some(before) = self.open.back_mut() {
            before.whole = before.is_whole();
        }
        while let Some(open) = self.open.pop_front_if(|open| open.whole) {
            self.emit(open, out);
        }
        self.latest.insert(index, self.emitted + self.open.len());
        self.open.push_back(Open { index, ..Open::default() });
        self.open.len() - 1
    }

    fn emit(&mut self, open: Open, out: &mut Found) {
        self.emitted += 1;
        self.last = Some((open.index, open.id.clone()));
        out.push(open.complete());
    }

    fn cut_last(&mut self, out: &mut Found) {
        let last = self.open.pop_back();
        self.done(out);
        self.emitted += usize::from(last.is_some());
        out.extend(last.map(Open::cut));
    }
}

/// The text of a fragment. A server that sends arguments as an object sends all of them at once.
fn fragment_text(inner: &mut Fields) -> String {
    match json::take(inner, "arguments").or_else(|| json::take(inner, "input")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

impl Open {
    /// Whether the arguments are a complete JSON object or array. Numbers and free text could continue.
    fn is_whole(&self) -> bool {
        let closed = self.text.trim_ascii_end().ends_with(['}', ']']);
        closed && !self.custom && serde_json::from_str::<IgnoredAny>(&self.text).is_ok()
    }

    fn complete(self) -> Draft {
        let text = Some(Value::String(self.text));
        Draft {
            id: self.id.or(self.has_empty_id.then(String::new)),
            name: self.name,
            arguments: if self.custom { custom_input(text) } else { arguments(text) },
            custom: self.custom,
            passthrough: self.passthrough,
            ..Draft::default()
        }
    }

    fn cut(mut self) -> Draft {
        let text = std::mem::take(&mut self.text);
        let arguments =
            if self.custom { cut_custom_input(&text) } else { cut_arguments(Some(Value::String(text))) };
        Draft { arguments, ..self.complete() }
    }
}
