//! A tool of your own in a confined workspace: it declares what it does, gets the workspace from its context, and
//! cannot leave it, whatever path a model invents.

use serde_json::{Value, json};
use toolyard::{
    Call, Drain, Engine, FsMode, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tools::WorkspaceContext;

/// Counts the lines of a file.
struct CountLines;

#[async_trait]
impl Tool for CountLines {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = args["path"].as_str().ok_or_else(|| ToolError::invalid_input("path is missing"))?;
        let lines = cx.workspace()?.read(path)?.lines().count();
        Ok(ToolOutput::text(format!("{lines} lines")).with_structured(json!({"lines": lines})))
    }
}

fn count_lines() -> ToolSpec {
    ToolSpec::read("count_lines")
        .describe("Counts the lines of a file")
        .input_schema(json!({
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        }))
        .requires_fs(FsMode::Read, "path") // checked before the call runs
        .blocking() // it reads a disk: keep it off the workers that drive tasks
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("poem.txt"), "so much depends\nupon\n")?;

    let engine = Engine::builder()
        .tools(toolyard_tools::workspace(dir.path())?) // the workspace, and read_file, list_dir, …
        .tool(from_fn(count_lines(), || CountLines))
        .build()
        .await?;
    let call = |id: &'static str, path: &str| Call::new(id, "count_lines", json!({"path": path}));
    let batch =
        vec![call("inside", "poem.txt"), call("outside", "../../etc/passwd"), call("missing", "pome.txt")];
    toolyard_examples::print(&engine.session("demo").dispatch(batch).await);
    engine.shutdown(Drain::default()).await;
    Ok(())
}
