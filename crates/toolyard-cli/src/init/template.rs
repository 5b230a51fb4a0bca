//! What is written: the files in `templates/`, with the names and versions in their places.
//!
//! The Rust of it is compiled and tested as the example `init` of this workspace. Its Cargo.toml has another name here,
//! since cargo leaves a directory that has one out of a package.

use super::name::PackageName;
use std::borrow::Cow;

const CONFIG: &str = include_str!("../../templates/shared/toolyard.toml");
const WELCOME: &str = include_str!("../../templates/shared/welcome.md");

const PYTHON_TOOLS: &str = include_str!("../../templates/python/tools.toml");
const PYTHON_BATCH: &str = include_str!("../../templates/python/batch.json");
const PYTHON_PROGRAM: &str = include_str!("../../templates/python/tools/count_words.py");

const RUST_TOOLS: &str = include_str!("../../templates/rust/tools.toml");
const RUST_BATCH: &str = include_str!("../../templates/rust/batch.json");
const RUST_PACKAGE: &str = include_str!("../../templates/rust/Cargo.toml.in");
const RUST_PROGRAM: &str = include_str!("../../templates/rust/src/main.rs");

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Template {
    /// A package with tools.
    Rust(PackageName),
    /// A program that is a tool.
    Python,
}

/// A file, and its path from the directory.
#[derive(Debug)]
pub(super) struct TemplateFile {
    pub(super) path: &'static str,
    pub(super) text: Cow<'static, str>,
}

impl TemplateFile {
    fn new(path: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { path, text: text.into() }
    }
}

impl Template {
    /// The files.
    pub(super) fn files(&self) -> Vec<TemplateFile> {
        let (tools, batch) = match self {
            Self::Python => (PYTHON_TOOLS, PYTHON_BATCH),
            Self::Rust(_) => (RUST_TOOLS, RUST_BATCH),
        };
        let mut files = vec![
            TemplateFile::new("toolyard.toml", format!("{CONFIG}{tools}")),
            TemplateFile::new("workspace/welcome.md", WELCOME),
            TemplateFile::new("batch.json", batch),
        ];
        match self {
            Self::Python => files.push(TemplateFile::new("tools/count_words.py", PYTHON_PROGRAM)),
            Self::Rust(name) => {
                files.push(TemplateFile::new("Cargo.toml", package(name)));
                files.push(TemplateFile::new("src/main.rs", RUST_PROGRAM));
            }
        }
        files
    }

    /// The commands to type next, and what they do.
    pub(super) fn next(&self) -> &'static [&'static str] {
        match self {
            Self::Python => &[
                "toolyard run batch.json    # runs three calls, one of them of tools/count_words.py",
                "toolyard check             # says what toolyard.toml means for each tool",
            ],
            Self::Rust(_) => &[
                "cargo run                  # runs the agent in src/main.rs",
                "cargo test                 # tests its tools",
                "toolyard run batch.json    # runs two calls of built-in tools, as toolyard.toml says",
            ],
        }
    }
}

fn package(name: &PackageName) -> String {
    RUST_PACKAGE
        .replace("{name}", name.as_str())
        .replace("{version}", env!("CARGO_PKG_VERSION"))
        .replace("{rust_version}", env!("CARGO_PKG_RUST_VERSION"))
}
