use toolyard::tool;

/// Finds a note.
#[tool(read, timeout = 5)]
async fn find(title: String) -> String {
    title
}

fn main() {}
