use toolyard::{ToolContext, ToolError, ToolSpec, tool_fn};

#[derive(serde::Serialize)]
struct Note {
    title: String,
}

fn find() -> impl toolyard::ToolFactory {
    tool_fn(ToolSpec::read("find"), |(): (), _: ToolContext| async move {
        Ok::<_, ToolError>(Note { title: String::new() })
    })
}

fn main() {}
