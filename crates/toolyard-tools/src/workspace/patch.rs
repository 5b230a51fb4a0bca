//! Replaces one stretch of text.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use std::path::Path;

impl Workspace {
    /// Replaces `old`, which must occur exactly once in the file, by `new`, and returns the new size in bytes.
    ///
    /// The rest of the file stays byte for byte. The file is written as by [`write`](Self::write); a write by another
    /// party between the read and the write of this operation is lost.
    ///
    /// # Errors
    /// [`WorkspaceError::Occurs`] with the number of occurrences when that is not one; an empty `old` occurs 0 times.
    /// Otherwise as [`read`](Self::read) and [`write`](Self::write).
    ///
    /// # Examples
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let workspace = toolyard_tools::Workspace::open(dir.path())?;
    /// workspace.write("a.txt", "one two two")?;
    /// workspace.patch("a.txt", "one", "1")?;
    /// assert_eq!(workspace.read("a.txt")?, "1 two two");
    /// let error = workspace.patch("a.txt", "two", "2").unwrap_err();
    /// assert!(error.to_string().contains("occurs 2 times"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn patch(
        &self,
        path: impl AsRef<Path>,
        old: impl AsRef<str>,
        new: impl AsRef<str>,
    ) -> Result<usize, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        let after = self.patched_named(&name, old.as_ref(), new.as_ref())?.after;
        self.write_named(&name, after.as_bytes())?;
        Ok(after.len())
    }

    /// The text before and after [`patch`](Self::patch), without writing it.
    pub(crate) fn patched(&self, path: &str, old: &str, new: &str) -> Result<Patched, WorkspaceError> {
        self.patched_named(&self.name(Path::new(path))?, old, new)
    }

    fn patched_named(&self, name: &Name, old: &str, new: &str) -> Result<Patched, WorkspaceError> {
        let before = self.read_text(name)?;
        let replaced = replace_once(&before, old, new);
        let after = replaced.map_err(|times| WorkspaceError::Occurs { path: name.requested(), times })?;
        Ok(Patched { before, after })
    }
}

/// The text of a file before and after a patch.
pub(crate) struct Patched {
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The text with `old` replaced, or the number of occurrences if that is not one.
fn replace_once(text: &str, old: &str, new: &str) -> Result<String, usize> {
    let first = old.chars().next().ok_or(0_usize)?;
    let start = text.find(old).ok_or(0_usize)?;
    // Search from the second character of the hit: "aa" occurs twice in "aaa", and either could be meant.
    if text[start + first.len_utf8()..].contains(old) {
        return Err(text.matches(old).count().max(2));
    }
    Ok([&text[..start], new, &text[start + old.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_occurrence_is_replaced() {
        assert_eq!(replace_once("a b c", "b", "ü"), Ok("a ü c".to_owned()));
        assert_eq!(replace_once("ää", "ää", ""), Ok(String::new()));
        assert_eq!(replace_once("a b a", "a", "x"), Err(2));
        assert_eq!(replace_once("a", "b", "x"), Err(0));
        assert_eq!(replace_once("a", "", "x"), Err(0));
    }

    #[test]
    fn overlapping_occurrences_count_as_more_than_one() {
        assert_eq!(replace_once("aaa", "aa", "x"), Err(2));
        assert_eq!(replace_once("ääää", "ää", "x"), Err(2));
    }
}
