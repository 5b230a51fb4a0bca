use toolyard::tool;

/// Saves a note.
#[tool(read, write)]
async fn save(title: String) -> String {
    title
}

fn main() {}
