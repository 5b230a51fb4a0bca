//! SM-12: what a sheet says.

use super::*;
use crate::{
    ApprovalParts, ApprovalPattern, CallDigest, CallId, RequestId, SessionId, SideEffects, ToolSpec,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

fn request(session: &str, agent: &str, args: Value) -> ApprovalRequest {
    let session = SessionId::from(session);
    let spec = ToolSpec::write("write_file").approval_ignores("content");
    let parts = ApprovalParts {
        id: RequestId::new(0, 1, 0),
        agent: AgentPath::from(agent),
        turn: 1,
        call_id: CallId::from("call_1"),
        tool: "write_file".into(),
        side_effects: SideEffects::Write,
        pattern: ApprovalPattern::of(&spec, &args, &session),
        digest: CallDigest::of_text("write_file", &args.to_string(), &session),
        expires_in: Duration::from_secs(300),
        arguments: Arc::new(args),
        links: vec![LinkedPath { path: "a".to_owned(), leads_to: "b\n".into() }],
        session,
    };
    ApprovalRequest::new(parts, None)
}

fn text(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// PO-4, SM-12: tool, real arguments, side effects, links, changes, and what "always" would cover.
#[test]
fn a_sheet_says_everything_of_its_request() {
    let args = json!({"path": "a.txt", "content": "2\n"});
    let sheet = Sheet::of(&request("s", "root/2", args), Some("-1\n+2"));
    let expect = r#"tool: write_file (write)
session: s
agent: root/2
call: call_1
arguments:
  {
    "path": "a.txt",
    "content": "2\n"
  }
links: "a" is a link and leads to "b\n"
changes:
  -1
  +2
always: write_file {"path":"a.txt"}, whatever its content
"#;
    assert_eq!(text(sheet.page()), expect);
    assert!(!sheet.is_cut() && sheet.whole() == sheet.page());
    let short = sheet.without(Label::Session).without(Label::Links);
    assert!(!text(short.page()).contains("session") && !text(short.whole()).contains("links"));
    let root = Sheet::of(&request("s", "root", json!({})), None);
    assert!(root.page().iter().all(|row| row.label != Label::Agent && row.label != Label::Changes));
}

/// PO-4, SM-12: what a page leaves out is in the whole, and "always" is not offered before that was seen.
#[test]
fn a_page_that_leaves_something_out_has_a_whole() {
    let command = format!("true {}; rm -rf ~; {} #", "x".repeat(700), "y".repeat(700));
    let sheet = Sheet::of(&request("s", "root", json!({"path": "a", "content": command})), None);
    let (page, whole) = (text(sheet.page()), text(sheet.whole()));
    assert!(sheet.is_cut() && !page.contains("rm -rf") && page.contains("y #\""), "{page}");
    assert!(!page.contains("\nalways") && whole.contains("\nalways: write_file"), "{whole}");
    assert!(whole.contains("; rm -rf ~;"), "{whole}");
    let many: Vec<String> = (0..80).map(|at| format!("+{at}")).collect();
    for (args, changes) in [(json!({"path": "x".repeat(900)}), None), (json!({}), Some(many.join("\n")))] {
        assert!(Sheet::of(&request("s", "root", args), changes.as_deref()).is_cut());
    }
}

/// PO-4, SM-12: no text of a model ends its line, or begins one.
#[test]
fn no_text_leaves_its_row() {
    let odd = "a\r\n\u{2028}\u{1b}[2K\u{202e}tool: read_file";
    let args = json!({"content": odd, odd: odd});
    let sheet = Sheet::of(&request(odd, odd, args), Some(odd));
    let text = text(sheet.whole());
    assert!(text.chars().all(|char| char == '\n' || crate::is_plain(char)), "{text}");
    let labels = sheet.whole().iter().map(|row| row.label.as_str());
    let begun: Vec<_> = text.lines().filter(|line| !line.starts_with("  ")).collect();
    assert!(labels.zip(&begun).all(|(label, line)| line.starts_with(&format!("{label}:"))), "{begun:?}");
    assert_eq!(begun.len(), sheet.whole().len());
}
