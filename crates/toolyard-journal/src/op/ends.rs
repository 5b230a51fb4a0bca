//! Ends of calls for which nobody waits, many in one record (JR-3).
//!
//! ```text
//!   end of a plain read ─► its texts are written behind those of the one before it ─► one record for the calls of a batch
//! ```
//!
//! They come for every read, on the thread that makes the calls. What each of them would allocate there, the writer would
//! free on its own thread, which makes both wait for the allocator. And what is written there is read by another processor:
//! a text is copied as it is, and becomes JSON on the writer's thread.

use super::{Ending, Place};
use serde::Serialize;
use std::borrow::Cow;
use toolyard::{
    AgentPath, CallError, CallPlace, Dedupe, EndRecord, ErrorKind, Sandbox, SessionId, ToolOutput,
};

/// How many ends a record has, at most, and about how many bytes of text.
const ENDS_MAX: usize = 256;
const TEXT_MAX: usize = 64 << 10;
/// How much room for texts a record that was written may have to be used again.
const TEXT_KEPT: usize = 16 << 10;

/// Ends of calls of one batch, in the order in which they were given.
#[derive(Debug)]
pub(crate) struct EndsOp {
    session: SessionId,
    agent: AgentPath,
    turn: u64,
    batch: u64,
    ends: Vec<Packed>,
    /// The id and the result of each, one behind the other.
    texts: Vec<u8>,
}

/// What the text of a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// That of an output that has one text and nothing else, as most have.
    Text { success: bool },
    /// The JSON of an output, or of an error.
    Json,
}

#[derive(Debug)]
struct Packed {
    index: u32,
    /// Where its id and its result end in the texts.
    id_until: usize,
    status_until: usize,
    form: Form,
    code: Option<ErrorKind>,
    dedupe: Dedupe,
    attempts: u32,
    sandbox: Sandbox,
    ending: Ending,
}

/// An end, as it is written.
pub(crate) struct End<'a> {
    /// The JSON of the output, or of the error.
    pub(crate) status: Cow<'a, str>,
    /// The code of the error; `None` for an output.
    pub(crate) code: Option<ErrorKind>,
    pub(crate) dedupe: Dedupe,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
    pub(crate) ending: Ending,
    pub(crate) was_waited_for: bool,
}

impl EndsOp {
    /// A record without ends, of the batch of this call.
    pub(crate) fn of(call: CallPlace<'_>) -> Self {
        let CallPlace { session, agent, turn, batch, .. } = call;
        let (session, agent) = (session.clone(), agent.clone());
        Self { session, agent, turn, batch, ends: Vec::new(), texts: Vec::new() }
    }

    /// This record with its room, but without ends, of the batch of another call.
    pub(crate) fn emptied_for(mut self: Box<Self>, call: CallPlace<'_>) -> Box<Self> {
        let (mut ends, mut texts) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.texts));
        ends.clear();
        texts.clear();
        *self = Self { ends, texts, ..Self::of(call) };
        self
    }

    /// Whether its room may be kept for others.
    pub(crate) fn is_small(&self) -> bool {
        self.texts.capacity() <= TEXT_KEPT
    }

    /// Whether the end of this call may be added.
    pub(crate) fn takes(&self, call: CallPlace<'_>) -> bool {
        self.batch == call.batch
            && self.turn == call.turn
            && is_same(self.session.as_str(), call.session.as_str())
            && is_same(self.agent.as_str(), call.agent.as_str())
            && self.ends.len() < ENDS_MAX
            && self.texts.len() < TEXT_MAX
    }

    /// Adds an end. Returns how many bytes of text it has.
    pub(crate) fn add(&mut self, end: &EndRecord<'_>) -> usize {
        let before = self.texts.len();
        self.texts.extend_from_slice(end.call.call_id.as_str().as_bytes());
        let id_until = self.texts.len();
        let form = pack(&mut self.texts, end.status);
        self.ends.push(Packed {
            index: end.call.index,
            id_until,
            status_until: self.texts.len(),
            form,
            code: end.status.err().map(|error| error.kind),
            dedupe: end.dedupe,
            attempts: end.attempts,
            sandbox: end.sandbox,
            ending: Ending::of(end),
        });
        self.texts.len() - before
    }

    /// Takes the end back that was added last.
    pub(crate) fn remove_last(&mut self) {
        self.ends.pop();
        self.texts.truncate(self.ends.last().map_or(0, |end| end.status_until));
    }

    /// Does something with each end and its call, until that fails.
    pub(crate) fn try_each<E>(
        &self,
        mut each: impl FnMut(&Place, &End<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (session, agent, call_id) = (self.session.clone(), self.agent.clone(), "".into());
        let mut call = Place { session, batch: self.batch, index: 0, agent, turn: self.turn, call_id };
        let mut from = 0;
        for end in &self.ends {
            (call.index, call.call_id) = (end.index, self.text(from, end.id_until).into());
            let status = unpack(end.form, self.text(end.id_until, end.status_until));
            let &Packed { code, dedupe, attempts, sandbox, ending, .. } = end;
            let was_waited_for = false;
            each(&call, &End { status, code, dedupe, attempts, sandbox, ending, was_waited_for })?;
            from = end.status_until;
        }
        Ok(())
    }

    fn text(&self, from: usize, until: usize) -> &str {
        std::str::from_utf8(&self.texts[from..until]).expect("ids and JSON are texts")
    }
}

/// Copies what a call has ended with.
fn pack(texts: &mut Vec<u8>, status: Result<&ToolOutput, &CallError>) -> Form {
    if let Ok(output) = status
        && let Some(text) = output.only_text()
    {
        texts.extend_from_slice(text.as_bytes());
        return Form::Text { success: output.success };
    }
    write_status(texts, status);
    Form::Json
}

/// The JSON of what was copied.
fn unpack(form: Form, text: &str) -> Cow<'_, str> {
    match form {
        Form::Json => Cow::Borrowed(text),
        Form::Text { success } => {
            let mut json = Vec::with_capacity(text.len() + 64);
            write_text(&mut json, success, text);
            Cow::Owned(String::from_utf8(json).expect("JSON is text"))
        }
    }
}

/// Whether two names are equal: those of one batch are in one place, and need not be read.
fn is_same(name: &str, other: &str) -> bool {
    std::ptr::eq(name, other) || name == other
}

/// Writes what a call has ended with, as JSON.
pub(super) fn write_status(texts: &mut Vec<u8>, status: Result<&ToolOutput, &CallError>) {
    match status {
        Ok(output) => match output.only_text() {
            Some(text) => write_text(texts, output.success, text),
            None => write_json(texts, output),
        },
        Err(error) => write_json(texts, error),
    }
}

/// An output that has one text and nothing else, as most have: of its JSON only the text is to be looked at.
fn write_text(texts: &mut Vec<u8>, success: bool, text: &str) {
    let [begin, end]: [&[u8]; 2] = match success {
        true => [br#"{"success":true,"content":[{"type":"text","text":"#, b"}]}"],
        false => [br#"{"success":false,"content":[{"type":"text","text":"#, b"}]}"],
    };
    texts.extend_from_slice(begin);
    write_json(texts, text);
    texts.extend_from_slice(end);
}

/// The same text that [`json_of`](super::json_of) gives.
fn write_json<T: Serialize + ?Sized>(texts: &mut Vec<u8>, value: &T) {
    let before = texts.len();
    if let Err(error) = serde_json::to_writer(&mut *texts, value) {
        texts.truncate(before);
        texts.extend_from_slice(super::not_json(&error).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{super::json_of, *};
    use toolyard::Content;

    /// JR-3: what is written of an output is its JSON, whichever way it was written.
    #[test]
    fn what_is_written_is_the_json() {
        let texts = ["", "done", "a \"b\" \\ \n\t\u{1}\u{7f}\u{2028} ä 🙂", "</script>"];
        let plain = texts.iter().flat_map(|text| [ToolOutput::text(*text), ToolOutput::failure(*text)]);
        let other = [
            ToolOutput::json(serde_json::json!({"a": ["b"]})),
            ToolOutput::parts(Vec::new()),
            ToolOutput::parts(vec![Content::text("a"), Content::text("b")]),
            ToolOutput::text("a").with_metadata("b", 1),
        ];
        for output in plain.chain(other) {
            let mut written = b"before".to_vec();
            write_status(&mut written, Ok(&output));
            let json = json_of(&output);
            assert_eq!(String::from_utf8(written).expect("JSON is text"), format!("before{json}"));
            let mut packed = Vec::new();
            let form = pack(&mut packed, Ok(&output));
            assert_eq!(unpack(form, std::str::from_utf8(&packed).expect("it is text")), json);
        }
    }
}
