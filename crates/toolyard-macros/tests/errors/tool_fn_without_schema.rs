use toolyard::{ToolContext, ToolError, ToolSpec, tool_fn};

#[derive(serde::Deserialize)]
struct Note {
    title: String,
}

fn find() -> impl toolyard::ToolFactory {
    tool_fn(ToolSpec::read("find"), |note: Note, _: ToolContext| async move { Ok::<_, ToolError>(note.title) })
}

fn main() {}
