use toolyard::tool;

struct Notes;

impl Notes {
    /// Finds a note.
    #[tool(read)]
    async fn find(&self, title: String) -> String {
        title
    }
}

fn main() {}
