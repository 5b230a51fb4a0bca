//! PO-1b, PO-5, CL-7: which agents know a tool, and which may call it.

use super::message;
use toolyard::{
    Capabilities, ForkPolicy, Session, SessionOptions, SubAgents, ToolContext, ToolSpec, tool_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

async fn office() -> Yard {
    yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("deploy").hidden_from_sub_agents(), log))
            .tool(scripted(ToolSpec::read("salaries").hidden_from_role("reviewer"), log))
            .tool(scripted(ToolSpec::pure("help").without_capability(), log))
    })
    .await
}

fn names(yard: &Yard, session: &Session) -> Vec<String> {
    yard.engine.definitions_for(session).iter().map(|entry| entry.name().to_owned()).collect()
}

const ALL: [&str; 6] = ["concurrent", "deploy", "help", "read", "salaries", "serial"];

/// PO-1b: a tool hidden from sub-agents or from a role is `not_found` there and absent from `Available`.
#[tokio::test(start_paused = true)]
async fn a_hidden_tool_does_not_exist() {
    let yard = office().await;
    let root = yard.engine.session("root");
    assert_eq!(names(&yard, &root), ALL);
    let fork = root.fork(ForkPolicy::default()).unwrap();
    let reviewer = yard.engine.session_with("r", SessionOptions::default().role("reviewer"));
    assert_eq!(names(&yard, &fork), ["concurrent", "help", "read", "salaries", "serial"]);
    assert_eq!(names(&yard, &reviewer), ["concurrent", "deploy", "help", "read", "serial"]);
    let batch = || vec![call("d", "deploy", 0, "ok"), call("s", "salaries", 0, "ok")];
    let outcomes = fork.dispatch(batch()).await;
    assert_eq!(shape(&outcomes), "d not_found, s ok");
    assert_eq!(
        message(&outcomes[0]),
        "Tool 'deploy' not found. Available: [concurrent, help, read, salaries, serial]"
    );
    assert_eq!(shape(&reviewer.dispatch(batch()).await), "d ok, s not_found");
    yard.events.check();
}

/// PO-1b: a tool lists what its own caller can call, and holds neither engine nor session for it.
#[tokio::test(start_paused = true)]
async fn a_handler_lists_the_tools_of_its_agent() {
    let yard = yard(|builder, log| {
        let lists = tool_fn(ToolSpec::pure("lists"), |(): (), cx: ToolContext| async move {
            let names = |tools: Vec<std::sync::Arc<toolyard::ToolEntry>>| {
                tools.iter().map(|entry| entry.name().to_owned()).collect::<Vec<_>>().join(" ")
            };
            let agent = cx.fork(ForkPolicy::default().only_tools(["read"]))?;
            Ok(format!("{}; {}", names(cx.definitions()), names(agent.definitions())))
        });
        builder.tool(scripted(ToolSpec::write("deploy").hidden_from_sub_agents(), log)).tool(lists)
    })
    .await;
    let root = yard.engine.session("root");
    let fork = root.fork(ForkPolicy::default()).unwrap();
    let list = || toolyard::Call::new("l", "lists", "{}");
    assert_eq!(root.call(list()).await.to_text(), "concurrent deploy lists read serial; read");
    assert_eq!(fork.call(list()).await.to_text(), "concurrent lists read serial; read");
    yard.events.check();
}

/// PO-5: a fork has at most the rights of its parent, whatever its policy says.
#[tokio::test(start_paused = true)]
async fn a_fork_narrows_only() {
    let yard = office().await;
    let options = SessionOptions::default()
        .role("reviewer")
        .only_tools(["read", "serial", "salaries"])
        .capabilities(Capabilities::default().tools(["read", "serial", "concurrent"]));
    let root = yard.engine.session_with("root", options);
    let wide = ForkPolicy::default()
        .role("director")
        .only_tools(ALL)
        .capabilities(Capabilities::default().tools(["read", "concurrent", "deploy"]));
    let fork = root.fork(wide).unwrap();
    assert_eq!(names(&yard, &root), ["read", "serial"]);
    assert_eq!(names(&yard, &fork), ["read"]);
    let again = fork.fork(ForkPolicy::default()).unwrap();
    let batch = ALL.map(|tool| call(tool, tool, 0, "ok")).to_vec();
    assert_eq!(
        shape(&again.dispatch(batch).await),
        "concurrent not_found, deploy not_found, help not_found, read ok, salaries not_found, serial permission_denied"
    );
    yard.events.check();
}

/// PO-1b, V1: a call of a tool without a capability is `permission_denied` and reveals nothing of the schema; a tool
/// that requires no capability runs.
#[tokio::test(start_paused = true)]
async fn a_tool_without_capability_is_denied() {
    let yard = yard(|builder, log| {
        builder
            .capabilities(Capabilities::default().tools(["read"]))
            .tool(scripted(ToolSpec::pure("help").without_capability(), log))
    })
    .await;
    let session = yard.engine.session("s");
    let broken = toolyard::Call::new("s", "serial", "{broken");
    let batch = vec![call("r", "read", 0, "ok"), broken, call("h", "help", 0, "ok")];
    let outcomes = session.dispatch(batch).await;
    assert_eq!(shape(&outcomes), "r ok, s permission_denied, h ok");
    assert_eq!(message(&outcomes[1]), "Permission denied: this agent may not call tool 'serial'");
    yard.events.check();
}
