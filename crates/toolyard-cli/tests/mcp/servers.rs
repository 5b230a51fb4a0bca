//! In front of a third-party server.

use crate::{
    client::{Person, Yard, read, text, until, working_in},
    real,
};
use serde_json::json;
use std::{fs, time::Duration};
use tokio::time::timeout;

/// CL-1, CL-3, PO-3: the server's tools are served under its name; reads run at once, a write needs approval, and the
/// server ends with the client.
#[tokio::test]
async fn a_servers_tools_go_through_the_pools_to_a_client() {
    let Some(script) = real::script("filesystem") else { return };
    let servers = format!("[mcp.files]\ncommand = \"node\"\nargs = [{script:?}, \".\"]\ntrust = true\n");
    let person = Person { answer: Some("no"), ..Person::default() };
    let asked = person.asked.clone();
    let mut yard = Yard::before("mcp-servers", &servers, &["--approve", "ask"], person).await;
    let path = |name: &str| yard.dir.join(name).display().to_string();
    fs::write(yard.dir.join("a.txt"), "hello").unwrap();

    let tools = yard.client.list_all_tools().await.unwrap();
    let read_only = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        tool.annotations.as_ref().unwrap().read_only_hint.unwrap()
    };
    assert!(read_only("files__read_text_file") && !read_only("files__write_file"));

    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(yard.send("files__read_text_file", json!({"path": path("a.txt")}), json!({})).await);
    }
    for call in sent {
        assert_eq!(text(&read(call).await.unwrap()), "hello");
    }
    let refused =
        yard.call("files__write_file", json!({"path": path("b.txt"), "content": "x"})).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).starts_with("User denied this operation."), "{}", text(&refused));
    assert!(!yard.dir.join("b.txt").exists());
    assert_eq!(asked.lock().unwrap().len(), 1);

    let (dir, program) = (yard.dir.clone(), yard.program.id());
    assert!(working_in(&dir, program) > 0, "the server works there");
    yard.client.close().await.unwrap();
    assert_eq!(yard.ended().await, Some(0));
    until("the server has ended", || working_in(&dir, program) == 0).await;
}

/// PO-4, V4: the server's question during a call is answered by the client's user; a request that the client does not
/// support is refused.
#[tokio::test]
async fn a_servers_questions_reach_the_client() {
    let Some(script) = real::script("everything") else { return };
    let servers = format!("[mcp.all]\ncommand = \"node\"\nargs = [{script:?}]\ntrust = true\n");
    let person = Person { answer: Some("it is me"), ..Person::default() };
    let asked = person.asked.clone();
    let yard = Yard::before("mcp-questions", &servers, &["--approve", "auto"], person).await;
    // The server lists these tools only for clients that can be asked, once it has seen that they can.
    let listed = async {
        for tool in ["all__trigger-elicitation-request", "all__trigger-sampling-request"] {
            while !yard.client.list_all_tools().await.unwrap().iter().any(|listed| listed.name == tool) {
                tokio::task::yield_now().await;
            }
        }
    };
    timeout(Duration::from_secs(30), listed).await.unwrap();
    let answered = yard.call("all__trigger-elicitation-request", json!({})).await.unwrap();
    let answer: String =
        answered.content.iter().filter_map(|part| part.as_text()).map(|part| part.text.as_str()).collect();
    assert!(answer.contains("it is me"), "{answer}");
    let question = asked.lock().unwrap().clone();
    assert_eq!(question, ["The MCP server 'all' asks: Please provide inputs for the following fields:"]);
    let refused = yard.call("all__trigger-sampling-request", json!({"prompt": "hello"})).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).contains("the client of this call declares no sampling"), "{}", text(&refused));
}
