use toolyard::tool;

#[derive(serde::Serialize)]
struct Note {
    title: String,
}

/// Finds a note.
#[tool(read)]
async fn find(title: String) -> Note {
    Note { title }
}

fn main() {}
