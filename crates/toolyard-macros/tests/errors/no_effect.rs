use toolyard::tool;

/// Finds a note.
#[tool]
async fn find(title: String) -> String {
    title
}

fn main() {}
