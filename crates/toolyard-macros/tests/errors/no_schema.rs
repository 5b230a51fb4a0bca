use toolyard::tool;

#[derive(serde::Deserialize)]
struct Note {
    #[allow(dead_code)]
    title: String,
}

/// Saves a note.
#[tool(write)]
async fn save(note: Note) -> String {
    let _ = note;
    String::new()
}

fn main() {}
