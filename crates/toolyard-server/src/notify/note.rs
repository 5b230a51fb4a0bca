//! What is told of a question: what it is about, and nothing by which it could be answered.

use crate::questions::Asked;
use serde::Serialize;
use std::fmt::Write as _;
use toolyard::RequestId;

/// What is told of a question. Not the arguments of its call, which may hold what nobody there should read; not its
/// digest, which an answer needs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Note {
    r#type: &'static str,
    session: String,
    agent: String,
    turn: u64,
    request_id: RequestId,
    call_id: String,
    tool: String,
    side_effects: String,
    asked_ms: u64,
    expires_ms: u64,
}

/// The note with its link.
#[derive(Serialize)]
struct Linked<'a> {
    #[serde(flatten)]
    note: &'a Note,
    link: String,
}

impl Note {
    pub(super) fn of(asked: &Asked) -> Self {
        let request = &asked.request;
        Self {
            r#type: "question.opened",
            session: request.session().to_string(),
            agent: request.agent().to_string(),
            turn: request.turn(),
            request_id: request.id(),
            call_id: request.call_id().to_string(),
            tool: request.tool().to_string(),
            side_effects: request.side_effects().to_string(),
            asked_ms: asked.asked_ms,
            expires_ms: asked.expires_ms,
        }
    }

    pub(super) fn question(&self) -> RequestId {
        self.request_id
    }

    /// The id by which receivers know repeats. It has no full stop, which is what a signature puts between its parts.
    pub(super) fn id(&self) -> String {
        format!("msg_{}", self.request_id).replace('.', "_")
    }

    /// The document, with a link that is made like this one.
    pub(super) fn document(&self, link: &str) -> String {
        let link = link
            .replace("{session}", &encoded(&self.session))
            .replace("{turn}", &self.turn.to_string())
            .replace("{request_id}", &self.request_id.to_string());
        serde_json::to_string(&Linked { note: self, link }).expect("a note can be written as JSON")
    }
}

/// A name as a part of a path: sessions of MCP clients may have any.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => text.push(char::from(byte)),
            // Writing to a text cannot fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}
