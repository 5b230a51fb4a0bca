use toolyard::tool;

/// Finds a note.
#[tool(read)]
async fn find(title: &str) -> String {
    title.to_owned()
}

fn main() {}
