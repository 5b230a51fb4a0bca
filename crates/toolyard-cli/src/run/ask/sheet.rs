//! A question laid out as a page of text.

#![cfg_attr(not(unix), allow(dead_code, reason = "questions are asked only on Unix"))]

use super::arguments;
use crate::shown::{ends, plain};
use std::{fmt::Write, time::Duration};
use toolyard::{AgentPath, ApprovalRequest};

/// The session of a run whose input names none.
const OWN_SESSION: &str = "run";

/// The number of characters shown of a name.
const NAME_CHARS_MAX: usize = 120;

/// The number of characters shown of a pattern, or of a line of changes.
const LINE_CHARS_MAX: usize = 400;

/// The number of lines of changes shown.
const CHANGES_MAX: usize = 60;

/// Columns before the text of a row.
const INDENT: usize = 13;

/// Terminals are assumed to be at least this wide.
const WIDTH_MIN: usize = 40;

/// The question, as rows with a label each. All lines are plain text.
pub(super) struct Sheet {
    rows: Vec<(&'static str, Vec<String>)>,
}

impl Sheet {
    /// Lays out a request; `changes` describes what the call would change.
    pub(super) fn of(request: &ApprovalRequest, changes: Option<&str>) -> Self {
        let name = |text: &str| vec![ends(text, NAME_CHARS_MAX, plain)];
        let mut rows =
            vec![("tool", vec![format!("{} ({})", plain(request.tool()), request.side_effects())])];
        if request.session().as_str() != OWN_SESSION {
            rows.push(("session", name(request.session().as_str())));
        }
        if *request.agent() != AgentPath::root() {
            rows.push(("agent", name(request.agent().as_str())));
        }
        rows.push(("call", name(request.call_id().as_str())));
        rows.push(("arguments", arguments::lines(request.arguments())));
        if let Some(changes) = changes {
            rows.push(("changes", self::changes(changes)));
        }
        rows.push(("always", vec![ends(&request.pattern().to_string(), LINE_CHARS_MAX, plain)]));
        Self { rows }
    }

    /// The page for a terminal of this width. Lines are wrapped here: a row never starts with text from a model.
    pub(super) fn render(&self, width: usize) -> String {
        let columns = width.max(WIDTH_MIN) - INDENT - 1;
        let mut text = "toolyard: may this call run?\n".to_owned();
        for (label, lines) in &self.rows {
            let mut label = *label;
            for piece in lines.iter().flat_map(|line| wrapped(line, columns)) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {label:<width$}{piece}", width = INDENT - 2);
                label = "";
            }
        }
        text
    }
}

/// The prompt for an answer.
pub(super) fn prompt(remaining: Duration) -> String {
    let seconds = remaining.as_millis().div_ceil(1000);
    let remaining = match seconds {
        0..60 => format!("{seconds}s"),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{}m {}s", seconds / 60, seconds % 60),
    };
    format!("  [y]es, [n]o, [a]lways, [q]uit; {remaining} left: ")
}

fn changes(text: &str) -> Vec<String> {
    // A tab is harmless, and the only control character that is common in texts.
    let line = |line: &str| ends(&line.replace('\t', "    "), LINE_CHARS_MAX, plain);
    let mut lines: Vec<String> = text.split('\n').map(line).collect();
    let more = lines.len().saturating_sub(CHANGES_MAX);
    if more > 0 {
        lines.truncate(CHANGES_MAX);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

/// Splits a line into pieces of at most this width. Non-ASCII characters count as wide: terminals disagree on them.
fn wrapped(line: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, char) in line.char_indices() {
        let width = if char.is_ascii() { 1 } else { 2 };
        if used + width > columns {
            pieces.push(&line[start..at]);
            (start, used) = (at, 0);
        }
        used += width;
    }
    pieces.push(&line[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use toolyard::{
        ApprovalParts, ApprovalPattern, CallDigest, CallId, RequestId, SessionId, SideEffects, ToolSpec,
    };

    fn request(session: &str, agent: &str, args: serde_json::Value) -> ApprovalRequest {
        let session = SessionId::from(session);
        let spec = ToolSpec::write("write_file").approval_ignores("content");
        let parts = ApprovalParts {
            id: RequestId(1),
            agent: AgentPath::from(agent),
            call_id: CallId::from("call_1"),
            tool: "write_file".into(),
            side_effects: SideEffects::Write,
            pattern: ApprovalPattern::of(&spec, &args, &session),
            digest: CallDigest::of("write_file", "1", &args, &session, 1),
            expires_in: Duration::from_secs(300),
            arguments: Arc::new(args),
            session,
        };
        ApprovalRequest::new(parts, None)
    }

    /// PO-4: tool, real arguments, side effects, changes, and what "always" would cover.
    #[test]
    fn a_page_shows_the_whole_request() {
        let args = json!({"path": "a.txt", "content": "2\n"});
        let sheet = Sheet::of(&request("run", "root", args), Some("@@ -1 +1 @@\n-1\n+2"));
        let expect = r#"toolyard: may this call run?
  tool       write_file (write)
  call       call_1
  arguments  {
               "path": "a.txt",
               "content": "2\n"
             }
  changes    @@ -1 +1 @@
             -1
             +2
  always     write_file {"path":"a.txt"}, whatever its content
"#;
        assert_eq!(sheet.render(80), expect);
        assert_eq!(prompt(Duration::from_millis(299_001)), "  [y]es, [n]o, [a]lways, [q]uit; 5m left: ");
        assert!(prompt(Duration::from_secs(75)).contains(" 1m 15s left"));
    }

    #[test]
    fn the_agent_is_shown_unless_it_is_the_root() {
        let text = Sheet::of(&request("episode-7", "root/2", json!({})), None).render(80);
        assert!(text.contains("\n  session    episode-7\n  agent      root/2\n"), "{text}");
    }

    /// PO-4: no text from a model appears where a row begins, however long or odd it is.
    #[test]
    fn a_page_cannot_be_drawn_on() {
        let trick = "x".repeat(66) + "  tool       read_file (read)";
        let odd = "漢".repeat(90) + "\r\u{1b}[2K\u{202e}  tool  y";
        let args = json!({"content": trick, "\n  tool": odd, "path": "\u{9b}2J"});
        let changes = format!("+{trick}\n+{odd}\n\ttab");
        let sheet = Sheet::of(&request("s\n\r\u{1b}c", "root", args), Some(&changes));
        let text = sheet.render(80);
        assert!(
            !text.chars().any(|char| char != '\n' && (char.is_control() || char == '\u{202e}')),
            "{text}"
        );
        let labels: Vec<&str> =
            text.lines().skip(1).filter_map(|line| line[..INDENT].split_whitespace().next()).collect();
        assert_eq!(labels, ["tool", "session", "call", "arguments", "changes", "always"]);
        assert!(
            text.lines().all(|line| line
                .chars()
                .map(|char| if char.is_ascii() { 1 } else { 2 })
                .sum::<usize>()
                < 80)
        );
        assert!(text.contains("\n                 tab\n"), "{text}");
    }
}
