//! Agents on a terminal: those that live are shown while they do (AG-8).

use crate::{
    terminal::{CTRL_C, Terminal},
    yard::{Yard, is_missing},
};

/// AG-8: a table shows what each agent does; the log is written above it, and the report comes in its place.
#[test]
fn agents_that_live_are_shown_on_a_terminal() {
    if is_missing() {
        return;
    }
    let script = r#"
        say '{"op":"tool_call","tool_call_id":"1","tool":"Echo","args":{"text":"x"}}'; hear
        say '{"op":"tool_call","tool_call_id":"2","tool":"None","args":{}}'; hear
        echo "so far" >&2
        hear; say '{"op":"bye"}'
    "#;
    let yard = Yard::scripted("agents-live", script, &["Echo"], "");
    let config = yard.dir.join("agents.toml");
    let mut terminal = Terminal::start(&["supervise", config.to_str().unwrap()], "");
    terminal.until("line=\"so far\"");
    terminal.until("agent   state    running  ended  failed  models");
    terminal.until("root/a  running  0        2      1       0");
    terminal.until("1 agents live, 0 have ended");
    terminal.types(CTRL_C);
    terminal.until("end");
    let done = terminal.end();
    let report = done.stderr.lines().rfind(|line| line.contains("root/a")).unwrap();
    assert!(report.contains(" ended "), "{done:?}");
    assert_eq!(done.code, Some(130));
}
