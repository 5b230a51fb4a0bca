use toolyard::{tool, tools};

struct Notes;

#[tools]
impl Notes {
    /// Saves a note.
    #[tool(write)]
    async fn save(&mut self, title: String) -> String {
        title
    }
}

fn main() {}
