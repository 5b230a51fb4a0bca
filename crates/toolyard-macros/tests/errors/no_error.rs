use toolyard::tool;

#[derive(Debug)]
struct NotFound;

/// Finds a note.
#[tool(read)]
async fn find(title: String) -> Result<String, NotFound> {
    let _ = title;
    Err(NotFound)
}

fn main() {}
