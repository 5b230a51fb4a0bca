//! One program in every sandbox: it counts the words of a file. Then it tries what nobody granted it: to read a file
//! beside its workspace, and to open a socket. What comes of that, and what a call takes, is how to choose a sandbox.
//!
//! ```text
//!   count.sh ───┬─► host       a command with all rights of this process
//!               ├─► process    the same command, confined
//!               └─► micro_vm   the same command, in a machine of its own
//!   service.rs ───► remote     the same over HTTP
//!   count.wat ────► wasm       the same as a module
//! ```

mod places;
mod service;

use places::Place;
use serde_json::{Value, json};
use std::{error::Error, fs, path::Path};
use toolyard::{Call, Drain, Engine, Grant, Outcome, PolicyRules, Rule, Sandbox, ToolSpec};
use toolyard_sandbox::{PortableTool, Sandboxes};

fn main() -> Result<(), Box<dyn Error>> {
    #[cfg(target_os = "linux")]
    toolyard_process::help_if_asked(); // confined programs are started by this very program, executed again
    show()
}

#[tokio::main]
async fn show() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let (workspace, secret) = (place.path().join("work"), place.path().join("secret.txt"));
    fs::create_dir(&workspace)?;
    fs::write(workspace.join("poem.txt"), "so much depends\nupon\n\na red wheel\nbarrow\n")?;
    fs::write(&secret, "hunter2 and more\n")?;
    let port = service::start(workspace.clone())?;
    let found = [
        (Sandbox::Host, places::host()),
        (Sandbox::Process, places::process().await),
        (Sandbox::Remote, places::remote(port)),
        (Sandbox::Wasm, places::wasm(place.path())),
        (Sandbox::MicroVm, places::micro_vm(place.path()).await),
    ];

    let mut missing = Vec::new();
    let mut there = Vec::new();
    for (sandbox, place) in found {
        match place {
            Ok(place) => there.push((sandbox, place)),
            Err(why) => missing.push((sandbox, why)),
        }
    }
    let names: Vec<&str> = there.iter().map(|(sandbox, _)| sandbox.as_str()).collect();
    let engine = engine(there, &workspace).await?;
    let session = engine.session("demo");
    row(["sandbox", "poem.txt", "secret.txt, not granted", "a socket", "the first of them used"]);
    for name in names {
        // One after another, and once before: no figure has another call in it, or what is done once.
        let call = |arguments: Value| session.call(Call::new("call", name, arguments));
        call(json!({"path": "poem.txt"})).await;
        let counted = call(json!({"path": "poem.txt"})).await;
        let read = call(json!({"path": secret})).await;
        let connected = call(json!({"connect": port.to_string()})).await;
        assert!(counted.success(), "{}", counted.to_text());
        row([name, &result(&counted), &result(&read), &result(&connected), &used(&counted)]);
    }
    for (sandbox, why) in missing {
        println!("{:<9} {why}", sandbox.as_str());
    }
    println!(
        "A service reads and connects on its own machine, which here is this one; no sandbox of ours is around it."
    );
    engine.shutdown(Drain::default()).await;
    Ok(())
}

/// An engine with one tool for each place, which runs there and nowhere else.
async fn engine(places: Vec<(Sandbox, Place)>, workspace: &Path) -> Result<Engine, Box<dyn Error>> {
    let mut builder = Engine::builder().tools(toolyard_tools::workspace(workspace)?);
    let (mut policy, mut adders) = (PolicyRules::new(Rule::Deny), Vec::new());
    for (sandbox, Place { program, add }) in places {
        let name = sandbox.as_str();
        let spec = ToolSpec::read(name).describe("Counts the words of a file");
        builder = builder.tool(tool(spec, program));
        policy = policy.tool(name, Rule::Allow(Grant::within(sandbox)));
        adders.push(add);
    }
    let all =
        |host| adders.into_iter().fold(Sandboxes::new(host), |sandboxes, add| add(sandboxes)).into_backend();
    Ok(builder.policy(policy).backend_around(all).build().await?)
}

/// A tool that is this program. On the host its processes are kept by a helper, which also knows what they used.
fn tool(spec: ToolSpec, program: toolyard::Program) -> PortableTool {
    let tool = PortableTool::new(spec, program);
    #[cfg(target_os = "linux")]
    if let Ok(helper) = toolyard_process::Helper::this_program() {
        return tool.contained(toolyard_process::Containment::Helper(helper));
    }
    tool
}

/// The document that it gave, or the end of what it said of its failure.
fn result(outcome: &Outcome) -> String {
    let text = outcome.to_text();
    let last = text.lines().last().unwrap_or_default();
    if outcome.success() {
        last.to_owned()
    } else {
        format!("✗ {}", last.rsplit(": ").next().unwrap_or(last))
    }
}

fn used(outcome: &Outcome) -> String {
    let Some(usage) = outcome.status.as_ref().ok().and_then(|output| output.usage()) else {
        return String::new();
    };
    let mut parts = vec![format!("{} ms", usage.wall_ms)];
    parts.extend(usage.cpu_ms.map(|ms| format!("CPU {ms} ms")));
    parts.extend(usage.memory_peak_bytes.map(|bytes| format!("memory {} KiB", bytes >> 10)));
    parts.join(", ")
}

fn row([sandbox, counted, read, connected, used]: [&str; 5]) {
    println!("{sandbox:<9} {counted:<12} {read:<33} {connected:<33} {used}");
}
