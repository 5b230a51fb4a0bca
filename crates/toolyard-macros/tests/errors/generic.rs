use toolyard::tool;

/// Finds a note.
#[tool(read)]
async fn find<T: Into<String>>(title: T) -> String {
    title.into()
}

fn main() {}
