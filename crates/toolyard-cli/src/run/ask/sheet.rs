//! A question laid out as a page of text.

#![cfg_attr(not(unix), allow(dead_code, reason = "questions are asked only on Unix"))]

use super::{arguments, extent::Extent};
use crate::shown::{ends, plain};
use std::{fmt::Write, time::Duration};
use toolyard::{AgentPath, ApprovalRequest, LinkedPath};

/// The session of a run whose input names none.
const OWN_SESSION: &str = "run";

/// Columns before the text of a row.
const INDENT: usize = 13;

/// Terminals are assumed to be at least this wide.
const WIDTH_MIN: usize = 40;

/// The labelled rows of a page. All lines are plain text.
type Rows = Vec<(&'static str, Vec<String>)>;

/// The label of the row that shows what an "always" covers.
const ALWAYS: &str = "always";

/// The question, as a page to begin with, and whole.
pub(super) struct Sheet {
    page: Rows,
    /// `None` if the page shows everything.
    whole: Option<Rows>,
}

impl Sheet {
    /// Lays out a request; `changes` describes what the call would change.
    pub(super) fn of(request: &ApprovalRequest, changes: Option<&str>) -> Self {
        let (mut page, whole) = (rows(request, changes, Extent::Cut), rows(request, changes, Extent::Whole));
        if page == whole {
            return Self { page, whole: None };
        }
        // Nobody is asked to allow more calls like one that has not been seen.
        page.retain(|(label, _)| *label != ALWAYS);
        Self { page, whole: Some(whole) }
    }

    /// Whether the page leaves anything out.
    pub(super) fn is_cut(&self) -> bool {
        self.whole.is_some()
    }

    /// The page for a terminal of this width. Lines are wrapped here: a row never starts with text from a model.
    pub(super) fn render(&self, width: usize) -> String {
        render("toolyard: may this call run?", &self.page, width)
    }

    /// The same with nothing left out.
    pub(super) fn render_whole(&self, width: usize) -> String {
        render("toolyard: the whole call", self.whole.as_ref().unwrap_or(&self.page), width)
    }
}

fn rows(request: &ApprovalRequest, changes: Option<&str>, extent: Extent) -> Rows {
    let name = |text: &str| vec![ends(text, extent.name_chars_max(), plain)];
    let mut rows = vec![("tool", vec![format!("{} ({})", plain(request.tool()), request.side_effects())])];
    if request.session().as_str() != OWN_SESSION {
        rows.push(("session", name(request.session().as_str())));
    }
    if *request.agent() != AgentPath::root() {
        rows.push(("agent", name(request.agent().as_str())));
    }
    rows.push(("call", name(request.call_id().as_str())));
    rows.push(("arguments", arguments::lines(request.arguments(), extent)));
    if !request.links().is_empty() {
        let links = request.links().iter().map(LinkedPath::to_string);
        let links = links.map(|link| ends(&link, extent.line_chars_max(), plain)).collect();
        rows.push(("links", extent.lines(links)));
    }
    if let Some(changes) = changes {
        rows.push(("changes", self::changes(changes, extent)));
    }
    let covered = match request.pattern() {
        pattern if pattern.is_exact() => format!("{}, with exactly these arguments", request.tool()),
        pattern => pattern.to_string(),
    };
    rows.push((ALWAYS, vec![ends(&covered, extent.line_chars_max(), plain)]));
    rows
}

fn render(heading: &str, rows: &Rows, width: usize) -> String {
    let columns = width.max(WIDTH_MIN) - INDENT - 1;
    let mut text = format!("{heading}\n");
    for (label, lines) in rows {
        let mut label = *label;
        for piece in lines.iter().flat_map(|line| wrapped(line, columns)) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {label:<width$}{piece}", width = INDENT - 2);
            label = "";
        }
    }
    text
}

/// The prompt for an answer; `is_seen` is whether the whole call was shown.
pub(super) fn prompt(remaining: Duration, is_seen: bool) -> String {
    let seconds = remaining.as_millis().div_ceil(1000);
    let remaining = match seconds {
        0..60 => format!("{seconds}s"),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{}m {}s", seconds / 60, seconds % 60),
    };
    let answers = match is_seen {
        true => "[y]es, [n]o, [a]lways, [q]uit",
        false => "[v]iew the whole call, [n]o, [q]uit",
    };
    format!("  {answers}; {remaining} left: ")
}

fn changes(text: &str, extent: Extent) -> Vec<String> {
    // A tab is harmless, and the only control character that is common in texts.
    let line = |line: &str| ends(&line.replace('\t', "    "), extent.line_chars_max(), plain);
    extent.lines(text.split('\n').map(line).collect())
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
            id: RequestId::new(0, 1, 0),
            agent: AgentPath::from(agent),
            call_id: CallId::from("call_1"),
            tool: "write_file".into(),
            side_effects: SideEffects::Write,
            pattern: ApprovalPattern::of(&spec, &args, &session),
            digest: CallDigest::of("write_file", "1", &args, &session, 1),
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
        assert_eq!(
            prompt(Duration::from_millis(299_001), true),
            "  [y]es, [n]o, [a]lways, [q]uit; 5m left: "
        );
        assert!(prompt(Duration::from_secs(75), true).contains(" 1m 15s left"));
    }

    #[test]
    fn the_agent_is_shown_unless_it_is_the_root() {
        let text = Sheet::of(&request("episode-7", "root/2", json!({})), None).render(80);
        assert!(text.contains("\n  session    episode-7\n  agent      root/2\n"), "{text}");
    }

    /// PO-4: what a page leaves out can be viewed whole, and "always" is not offered before that.
    #[test]
    fn a_page_that_leaves_something_out_has_a_whole() {
        let command = format!("true {}; rm -rf ~; {} #", "x".repeat(700), "y".repeat(700));
        let args = json!({"path": "a.txt", "content": command});
        let sheet = Sheet::of(&request("run", "root", args.clone()), None);
        let (page, whole) = (sheet.render(2000), sheet.render_whole(2000));
        assert!(sheet.is_cut() && !page.contains("rm -rf") && page.contains("y #\""), "{page}");
        assert!(!page.contains("\n  always") && !prompt(Duration::ZERO, false).contains("lways"), "{page}");
        assert!(whole.contains("; rm -rf ~;") && whole.contains("\n  always     write_file"), "{whole}");
        let many: Vec<String> = (0..80).map(|at| format!("+{at}")).collect();
        for (args, changes) in [(json!({"path": "x".repeat(900)}), None), (json!({}), Some(many.join("\n")))]
        {
            let sheet = Sheet::of(&request("run", "root", args), changes.as_deref());
            assert!(sheet.is_cut(), "{}", sheet.render(80));
        }
        let sheet = Sheet::of(&request("run", "root", json!({"path": "a"})), Some("+1"));
        assert_eq!(
            (sheet.is_cut(), sheet.render_whole(80).lines().skip(1).eq(sheet.render(80).lines().skip(1))),
            (false, true)
        );
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
