use toolyard::tool;

/// Finds a note.
#[tool(read, timout = "5s")]
async fn find(title: String) -> String {
    title
}

fn main() {}
