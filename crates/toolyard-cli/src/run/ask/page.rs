//! A question laid out for a terminal: a row per label, wrapped to its width.

#![cfg_attr(not(unix), allow(dead_code, reason = "questions are asked only on Unix"))]

use serde_json::Value;
use std::{fmt::Write, sync::Arc, time::Duration};
use toolyard::{
    ApprovalRequest,
    sheet::{Label, Row, Sheet},
};

/// The session of a run whose input names none.
const OWN_SESSION: &str = "run";

/// Columns before the text of a row.
const INDENT: usize = 13;

/// Terminals are assumed to be at least this wide.
const WIDTH_MIN: usize = 40;

/// A question on a terminal.
pub(super) struct Page {
    sheet: Sheet,
}

impl Page {
    /// Lays out a request; `changes` describes what the call would change.
    pub(super) fn of(request: &ApprovalRequest, changes: Option<&str>) -> Self {
        let sheet = Sheet::of(request, changes);
        match request.session().as_str() {
            OWN_SESSION => Self { sheet: sheet.without(Label::Session) },
            _ => Self { sheet },
        }
    }

    /// Lays out a request with other arguments, which hold for this call alone.
    pub(super) fn edited(request: &ApprovalRequest, arguments: Arc<Value>) -> Self {
        let Self { sheet } = Self::of(&request.with_arguments(arguments), None);
        Self { sheet: sheet.without(Label::Always) }
    }

    /// Whether the page leaves anything out.
    pub(super) fn is_cut(&self) -> bool {
        self.sheet.is_cut()
    }

    /// The page for a terminal of this width. Lines are wrapped here: a row never starts with text from a model.
    pub(super) fn render(&self, width: usize) -> String {
        render("toolyard: may this call run?", self.sheet.page(), width)
    }

    /// The same with nothing left out.
    pub(super) fn render_whole(&self, width: usize) -> String {
        render("toolyard: the whole call", self.sheet.whole(), width)
    }
}

fn render(heading: &str, rows: &[Row], width: usize) -> String {
    let columns = width.max(WIDTH_MIN) - INDENT - 1;
    let mut text = format!("{heading}\n");
    for row in rows {
        let mut label = row.label.as_str();
        for piece in row.lines.iter().flat_map(|line| wrapped(line, columns)) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {label:<width$}{piece}", width = INDENT - 2);
            label = "";
        }
    }
    text
}

/// The prompt for an answer; `is_seen` is whether the whole call was shown, `is_edited` whether its arguments are those
/// that the user gave.
pub(super) fn prompt(remaining: Duration, is_seen: bool, is_edited: bool) -> String {
    let seconds = remaining.as_millis().div_ceil(1000);
    let remaining = match seconds {
        0..60 => format!("{seconds}s"),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{}m {}s", seconds / 60, seconds % 60),
    };
    let answers = match (is_seen, is_edited) {
        (true, false) => "[y]es, [n]o, [e]dit, [a]lways, never, [q]uit",
        (true, true) => "[y]es, with these arguments, [n]o, [e]dit again, [q]uit",
        (false, _) => "[v]iew the whole call, [n]o, [e]dit, [q]uit",
    };
    format!("  {answers}; {remaining} left: ")
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
    use toolyard::{
        AgentPath, ApprovalParts, ApprovalPattern, CallDigest, CallId, RequestId, SessionId, SideEffects,
        ToolSpec,
    };

    fn request(session: &str, agent: &str, args: serde_json::Value) -> ApprovalRequest {
        let session = SessionId::from(session);
        let spec = ToolSpec::write("write_file").approval_ignores("content");
        let parts = ApprovalParts {
            id: RequestId::new(0, 1, 0),
            agent: AgentPath::from(agent),
            call_id: CallId::from("call_1"),
            tool: "write_file".into(),
            side_effects: SideEffects::Write,
            pattern: ApprovalPattern::of(&spec, &args, &session),
            digest: CallDigest::of_text("write_file", &args.to_string(), &session),
            expires_in: Duration::from_secs(300),
            arguments: Arc::new(args),
            links: Vec::new(),
            session,
            turn: 1,
        };
        ApprovalRequest::new(parts, None)
    }

    /// PO-4: tool, real arguments, side effects, changes, and what "always" would cover.
    #[test]
    fn a_page_shows_the_whole_request() {
        let args = json!({"path": "a.txt", "content": "2\n"});
        let page = Page::of(&request("run", "root", args), Some("@@ -1 +1 @@\n-1\n+2"));
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
        assert_eq!(page.render(80), expect);
        assert_eq!(
            prompt(Duration::from_millis(299_001), true, false),
            "  [y]es, [n]o, [e]dit, [a]lways, never, [q]uit; 5m left: "
        );
        assert!(prompt(Duration::from_secs(75), true, false).contains(" 1m 15s left"));
        // SM-5: what is changed holds for one call.
        assert!(!prompt(Duration::ZERO, true, true).contains("lways"));
    }

    #[test]
    fn the_agent_is_shown_unless_it_is_the_root() {
        let text = Page::of(&request("episode-7", "root/2", json!({})), None).render(80);
        assert!(text.contains("\n  session    episode-7\n  agent      root/2\n"), "{text}");
    }

    /// PO-4: what a page leaves out can be viewed whole, and "always" is not offered before that.
    #[test]
    fn a_page_that_leaves_something_out_has_a_whole() {
        let command = format!("true {}; rm -rf ~; {} #", "x".repeat(700), "y".repeat(700));
        let args = json!({"path": "a.txt", "content": command});
        let page = Page::of(&request("run", "root", args), None);
        let (cut, whole) = (page.render(2000), page.render_whole(2000));
        assert!(page.is_cut() && !cut.contains("rm -rf") && cut.contains("y #\""), "{cut}");
        assert!(
            !cut.contains("\n  always") && !prompt(Duration::ZERO, false, false).contains("lways"),
            "{cut}"
        );
        assert!(whole.contains("; rm -rf ~;") && whole.contains("\n  always     write_file"), "{whole}");
        let page = Page::of(&request("run", "root", json!({"path": "a"})), Some("+1"));
        assert!(!page.is_cut() && page.render_whole(80).lines().skip(1).eq(page.render(80).lines().skip(1)));
    }

    /// PO-4: no text from a model appears where a row begins, however long or odd it is.
    #[test]
    fn a_page_cannot_be_drawn_on() {
        let trick = "x".repeat(66) + "  tool       read_file (read)";
        let odd = "漢".repeat(90) + "\r\u{1b}[2K\u{202e}  tool  y";
        let args = json!({"content": trick, "\n  tool": odd, "path": "\u{9b}2J"});
        let changes = format!("+{trick}\n+{odd}\n\ttab");
        let page = Page::of(&request("s\n\r\u{1b}c", "root", args), Some(&changes));
        let text = page.render(80);
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
