use toolyard::tool;

/// Finds a note.
#[tool(read)]
fn find(title: String) -> String {
    title
}

fn main() {}
