//! Large results.

/// What 10 MB may be spent on.
pub(crate) const HOW: [&str; 7] =
    ["parts", "text", "escapes", "long_parts", "resources", "structured", "objects"];

/// A result of 10 MB, as text.
pub(crate) fn much(how: &str) -> String {
    const BYTES: usize = 10_000_000;
    let list = |item: &str, count: usize| format!("[{}{item}]", format!("{item},").repeat(count - 1));
    let part = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    match how {
        "parts" => format!(r#"{{"content":{}}}"#, list(&part("12345678"), 300_000)),
        "text" => format!(r#"{{"content":[{}]}}"#, part(&"x".repeat(BYTES))),
        "escapes" => format!(r#"{{"content":[{}]}}"#, part(&"\\n".repeat(BYTES / 2))),
        "long_parts" => format!(r#"{{"content":{}}}"#, list(&part(&"x".repeat(BYTES / 10_000)), 10_000)),
        "resources" => {
            let text = "x".repeat(BYTES / 8_000);
            let resource = format!(r#"{{"type":"resource","resource":{{"uri":"a:b","text":"{text}"}}}}"#);
            format!(r#"{{"content":{}}}"#, list(&resource, 8_000))
        }
        "structured" => format!(r#"{{"content":[],"structuredContent":{{"a":{}}}}}"#, list("[]", 3_000_000)),
        "objects" => {
            let object = format!(r#"{{"key":"{}"}}"#, "x".repeat(BYTES / 33_000));
            format!(r#"{{"content":[],"structuredContent":{{"a":{}}}}}"#, list(&object, 33_000))
        }
        other => panic!("{other}"),
    }
}
