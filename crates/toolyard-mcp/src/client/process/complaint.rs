//! Picks from what a server wrote to stderr the lines that say why it ended.
//!
//! The last line is often not the one: Node ends with its version, and a stack trace with its outermost frame.

/// Maximum number of lines that are picked.
const LINES_MAX: usize = 3;

/// Words of lines that say what went wrong, in lower case.
const TELLING: &[&str] = &[
    "cannot",
    "can't",
    "could not",
    "denied",
    "err!",
    "error",
    "exception",
    "failed",
    "fatal",
    "invalid",
    "missing",
    "must ",
    "no such",
    "not found",
    "not set",
    "panicked",
    "refused",
    "required",
    "unable",
    "unknown",
    "usage:",
];

/// The beginnings of lines that say nothing about the reason: frames of a stack, and what surrounds it.
const NOISE: &[&str] = &[
    "at ",
    "file \"",
    "node.js v",
    "note: run with",
    "note: some details",
    "stack backtrace",
    "throw ",
    "traceback (most recent",
    "node:",
    "npm err! a complete log",
    "npm error a complete log",
];

/// The lines that say why, in order; the last ones if none does.
pub(crate) fn pick(lines: &[String]) -> Vec<&str> {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !is_noise(line)).collect();
    let mut picked: Vec<&str> = Vec::new();
    // What follows a colon at the end of a line is the rest of it, as in a panic of Rust.
    let mut continues = false;
    for line in &lines {
        if continues || is_telling(line) {
            picked.push(line);
            continues = line.ends_with(':');
        }
    }
    let of = if picked.is_empty() { lines } else { picked };
    of[of.len().saturating_sub(LINES_MAX)..].to_vec()
}

fn is_telling(line: &str) -> bool {
    let line = line.to_lowercase();
    TELLING.iter().any(|word| line.contains(word))
}

/// Whether a line is part of a stack trace, or has no words at all.
fn is_noise(line: &str) -> bool {
    let has_words = line.chars().any(char::is_alphanumeric);
    let line = line.to_lowercase();
    !has_words || NOISE.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stderr: &str, expect: &[&str]) {
        let lines: Vec<String> = stderr.lines().map(str::to_owned).collect();
        assert_eq!(pick(&lines), expect, "{stderr}");
    }

    #[test]
    fn a_crash_of_node_is_explained_by_its_error() {
        let stderr = "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\n\
            Error: Cannot find module '/srv/server.js'\n    at Module._resolveFilename (node:internal:1140:15)\n\
            \x20   at node:internal/main/run_main_module:28:49 {\n  code: 'MODULE_MISSED',\n  requireStack: []\n}\n\n\
            Node.js v20.11.1\n";
        check(stderr, &["Error: Cannot find module '/srv/server.js'"]);
    }

    #[test]
    fn a_crash_of_python_is_explained_by_its_exception() {
        let stderr = "Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    import mcp\n\
            ModuleNotFoundError: No module named 'mcp'\n";
        check(stderr, &["ModuleNotFoundError: No module named 'mcp'"]);
    }

    #[test]
    fn a_panic_of_rust_is_explained_by_its_message() {
        let stderr = "starting\n\nthread 'main' panicked at src/main.rs:2:5:\nno licence\nstack backtrace:\n\
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        check(stderr, &["thread 'main' panicked at src/main.rs:2:5:", "no licence"]);
    }

    #[test]
    fn words_that_say_nothing_are_better_than_none() {
        check("no licence\n", &["no licence"]);
        check("a\nb\nc\nd\n", &["b", "c", "d"]);
        check("usage: server DIR\n", &["usage: server DIR"]);
        check("error: 1\nerror: 2\nerror: 3\nerror: 4\nbye\n", &["error: 2", "error: 3", "error: 4"]);
        check("", &[]);
        check("}\n  ^\nNode.js v20.11.1\n", &[]);
    }
}
