//! A page of text and the blocks of code in it.

use crate::child::root;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A Markdown file.
pub(crate) struct Page {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced block.
pub(crate) struct Block {
    /// What follows the opening fence.
    pub(crate) tag: String,
    pub(crate) code: String,
}

impl Page {
    pub(crate) fn open(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text }
    }

    /// The blocks, and the text beside them.
    fn parts(&self) -> (Vec<Block>, String) {
        let (mut blocks, mut prose, mut within) = (Vec::<Block>::new(), String::new(), false);
        for line in self.text.lines() {
            match line.strip_prefix("```") {
                Some(tag) if !within => blocks.push(Block { tag: tag.to_owned(), code: String::new() }),
                Some(rest) => assert_eq!(rest, "", "{}: a fence in a block", self.path),
                None if within => {
                    let block = blocks.last_mut().unwrap();
                    block.code.push_str(line);
                    block.code.push('\n');
                }
                None => {
                    prose.push_str(line);
                    prose.push('\n');
                }
            }
            within ^= line.starts_with("```");
        }
        assert!(!within, "{}: a block without an end", self.path);
        (blocks, prose)
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.parts().0
    }

    /// The text beside the blocks.
    pub(crate) fn prose(&self) -> String {
        self.parts().1
    }
}

/// README and the pages of the guide.
pub(crate) fn guide() -> Vec<Page> {
    let mut paths = files("docs/guide", &["md"]);
    paths.insert(0, "README.md".to_owned());
    paths.iter().map(|path| Page::open(path)).collect()
}

/// The files under a folder whose names end so, as paths from the root, sorted.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let ends = path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one));
            match path.is_dir() {
                true => folders.push(path),
                false if ends => found.push(from_root(&path)),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn from_root(path: &Path) -> String {
    let path: PathBuf = path.strip_prefix(root()).unwrap().to_owned();
    path.into_os_string().into_string().unwrap()
}
