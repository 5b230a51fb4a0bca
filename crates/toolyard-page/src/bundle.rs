//! Makes one script of several modules, so that a page can hold them under one hash.
//!
//! Each module becomes the body of a function that returns what it exports; its imports become what those functions
//! returned. This reads the page's own modules, not any module: an `import { … } from "./x.js";` begins a line and ends
//! with a semicolon at the end of one, and `export` stands before a declaration.

use std::fmt::Write as _;

/// The modules as one script. Each imports only from those before it.
pub(crate) fn script<'a>(modules: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    let mut script = String::from("\"use strict\";\nconst modules = {};\n");
    for (name, text) in modules {
        let Module { body, exports } = module(text);
        let exports = exports.join(", ");
        writeln!(script, "modules[\"./{name}\"] = (() => {{\n{body}return {{ {exports} }};\n}})();")
            .expect("a String can be written to");
    }
    script
}

struct Module<'a> {
    body: String,
    exports: Vec<&'a str>,
}

fn module(text: &str) -> Module<'_> {
    let (mut body, mut exports) = (String::new(), Vec::new());
    for statement in text.split_inclusive('\n') {
        let line = match statement.strip_prefix("export ") {
            Some(declaration) => {
                exports.extend(declared(declaration));
                declaration.to_owned()
            }
            None => imported(statement).unwrap_or_else(|| statement.to_owned()),
        };
        body.push_str(&line);
    }
    Module { body, exports }
}

/// The name that a declaration declares.
fn declared(declaration: &str) -> Option<&str> {
    let mut words =
        declaration.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words.find(|word| !matches!(*word, "async" | "function" | "class" | "const"))
}

/// An import, as what the function of that module returned.
fn imported(line: &str) -> Option<String> {
    let (names, from) = line.strip_prefix("import ")?.split_once(" from ")?;
    let from = from.trim_end().trim_end_matches(';');
    Some(format!("const {names} = modules[{from}];\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::{REPORT, SHARED};

    #[test]
    fn a_module_gets_what_those_before_it_export() {
        let modules = [
            ("a.js", "export function one() {\n  return 1;\n}\nexport const TWO = 2;\n"),
            ("b.js", "import { TWO, one } from \"./a.js\";\none(TWO);\n"),
        ];
        let script = script(&modules);
        assert!(script.contains("return { one, TWO };"), "{script}");
        assert!(script.contains("const { TWO, one } = modules[\"./a.js\"];\none(TWO);\n"), "{script}");
    }

    /// The order of the list is one in which every module comes after what it imports.
    #[test]
    fn imports_come_first() {
        let mut before = Vec::new();
        for (name, text) in SHARED.iter().chain([&REPORT]) {
            for import in text.split("from \"./").skip(1).filter_map(|after| after.split('"').next()) {
                assert!(before.contains(&import), "{name} imports {import} too early");
            }
            before.push(*name);
        }
    }

    #[test]
    fn nothing_of_a_module_is_left_over() {
        let script = script(SHARED.iter().chain([&REPORT]));
        let left = script.lines().filter(|line| line.starts_with("import ") || line.starts_with("export "));
        assert_eq!(left.count(), 0);
        assert!(!script.contains("</"), "a script ends at its first closing tag");
    }
}
