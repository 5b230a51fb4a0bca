use toolyard::tool;

#[tool(read)]
async fn find(title: String) -> String {
    title
}

fn main() {}
