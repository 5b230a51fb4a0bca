//! `reconcile` in the configuration: another tool tells what became of a call that was cut off (JR-6).

use crate::{
    child::{fed, program},
    yard::{CONFIG, Yard, response},
};
use serde_json::json;
use std::fs;

/// `note`, with a tool beside it that says what this shell command says, once it has read its arguments.
fn config(says: &str, reconcile: &str) -> String {
    let command = json!(["sh", "-c", says]);
    format!(
        "{CONFIG}\n[program.noted]\ndescription = \"Tells whether a line is there\"\nside_effects = \"read\"\n\
         command = {command}\n[policy.rules.noted]\nsandbox = \"host\"\n[tools.note]\nreconcile = {reconcile}\n"
    )
}

const BY_TEXT: &str = r#"{ tool = "noted", arguments = { text = "{args.text}" } }"#;
const IS_THERE: &str =
    r#"if grep -qF "$(cat)" ../effects; then echo '{"state": "done", "output": "noted before"}'; fi"#;

/// The texts of the results of a response that is taken up.
fn resumed(yard: &Yard) -> Vec<String> {
    let done = yard.done(&["--resume", "--to", "anthropic"], "");
    let results = done.json()["content"].as_array().unwrap().clone();
    results.iter().map(|result| result["content"].to_string()).collect()
}

/// JR-6: what the other tool finds is the result, and what waited behind the call runs.
#[test]
fn what_is_found_is_the_result() {
    let yard = Yard::new();
    fs::write(yard.file("toolyard.toml"), config(IS_THERE, BY_TEXT)).unwrap();
    yard.killed(&response(&["a", "b"]));
    let results = resumed(&yard);
    assert!(results[0].contains("noted before"), "{results:?}");
    assert!(!results[1].contains("nobody knows"), "{results:?}");
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "b"})]);
}

/// JR-6: a call that has certainly done nothing runs.
#[test]
fn what_was_not_done_runs() {
    let yard = Yard::new();
    let says = r#"echo '{"state": "not_done", "final": true}'"#;
    fs::write(yard.file("toolyard.toml"), config(says, BY_TEXT)).unwrap();
    yard.killed(&response(&["a"]));
    let results = resumed(&yard);
    assert!(!results[0].contains("nobody knows"), "{results:?}");
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "a"})]);
}

/// JR-6: nobody knows what became of a call if the other tool fails, does not say it, may change something, or is not told
/// the key that it asks for.
#[test]
fn what_is_not_said_is_not_known() {
    let by_key = r#"{ tool = "noted", arguments = { key = "{key}" } }"#;
    let by_itself = r#"{ tool = "note", arguments = { text = "{args.text}" } }"#;
    let done = r#"echo '{"state": "done"}'"#;
    for (says, reconcile) in
        [("exit 1", BY_TEXT), ("echo perhaps", BY_TEXT), (done, by_key), (done, by_itself)]
    {
        let yard = Yard::new();
        fs::write(yard.file("toolyard.toml"), config(says, reconcile)).unwrap();
        yard.killed(&response(&["a"]));
        let results = resumed(&yard);
        assert!(results[0].contains("nobody knows"), "{says}, {reconcile}: {results:?}");
        assert_eq!(yard.effects(), [json!({"text": "a"})]);
    }
}

/// `check` refuses what cannot be meant, and warns of a tool that cannot tell.
#[test]
fn check_explains_what_is_wrong() {
    let yard = Yard::new();
    let check = |reconcile: &str| {
        fs::write(yard.file("toolyard.toml"), config("true", reconcile)).unwrap();
        let mut check = program(&["check", "--json", "--config"]);
        check.arg(yard.file("toolyard.toml"));
        fed(check, "")
    };
    for (reconcile, what) in [
        (r#"{ arguments = {} }"#, "needs a tool"),
        (r#"{ tool = "noted", found = "items" }"#, "found must be a JSON pointer"),
        (r#"{ tool = "noted", arguments = { text = "{text}" } }"#, "'{text}' stands for nothing"),
        (r#"{ tool = "noted", argument = {} }"#, "unknown key 'argument'"),
    ] {
        let done = check(reconcile);
        assert_eq!(done.code, Some(2), "{done:?}");
        let said = done.json()["errors"][0]["what"].as_str().unwrap().to_owned();
        assert!(said.contains(what), "{said}");
    }
    for (reconcile, why) in
        [(r#"{ tool = "gone" }"#, "there is no such tool"), (r#"{ tool = "note" }"#, "does not only read")]
    {
        let warnings = check(reconcile).json()["warnings"].to_string();
        assert!(warnings.contains(why), "{warnings}");
    }
    assert!(!check(BY_TEXT).json()["warnings"].to_string().contains("reconcile"));
}

/// A server whose tool `send` notes what it is sent, and lasts if it is told to, and whose tool `find` tells what was sent.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  text=$(printf %s "$line" | sed -n 's/.*"text":"\([a-z]*\)".*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  open='"inputSchema":{"type":"object"}'
  case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) say '{"tools":[{"name":"send",'"$open"'},{"name":"find",'"$open"',"annotations":{"readOnlyHint":true}}]}' ;;
    *'"find"'*)
      found=$(grep -c "\"$text\"" effects)
      [ "$found" = 1 ] && items='["'"$text"'"]' || items='[]'
      say '{"content":[{"type":"text","text":"'"$text found $found"'"}],"structuredContent":{"items":'"$items"'}}' ;;
    *'"send"'*)
      echo '{"text":"'"$text"'"}' >>effects
      if [ -e waits ]; then cat never; fi
      say '{"content":[{"type":"text","text":"sent"}]}' ;;
  esac
done
"#;

/// JR-6: a tool of a server that has no way to say it is asked about by another tool of the server.
#[test]
fn a_tool_of_a_server_tells_what_another_one_did() {
    let yard = Yard::new();
    fs::write(yard.file("server.sh"), SERVER).unwrap();
    let config = format!(
        "[confirmation]\ndefault = {{ read = \"auto\", write = \"auto\", execute = \"auto\", network = \"auto\" }}\n[mcp.post]\ncommand = \"sh\"\n\
         args = [\"server.sh\"]\ncwd = {:?}\ntrust = true\n\
         [tools.post__send]\nreconcile = {{ tool = \"post__find\", arguments = {{ text = \"{{args.text}}\" }}, \
         found = \"/items\" }}\n",
        yard.file("")
    );
    fs::write(yard.file("toolyard.toml"), config).unwrap();
    let calls = ["a", "b"].map(|id| json!({"call_id": id, "name": "post__send", "arguments": {"text": id}}));
    yard.killed(&json!({"calls": calls}).to_string());
    let done = yard.done(&["--resume"], "");
    let results = done.json()["results"].as_array().unwrap().clone();
    let texts: Vec<String> = results.iter().map(|result| result["content"].to_string()).collect();
    assert!(texts[0].contains("a found 1") && texts[1].contains("sent"), "{done:?}");
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "b"})]);
}
