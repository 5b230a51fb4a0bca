//! Writes all files, or none: what exists is never touched.

use super::template::TemplateFile;
use crate::{error::Error, output_file::failed};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Writes the files below `dir`, which is made if it is missing.
///
/// # Errors
/// [`Error::Usage`], which names every file that exists, and [`Error::Write`]. Then nothing is left of those that were
/// written before.
pub(super) fn all(dir: &Path, files: &[TemplateFile]) -> Result<(), Error> {
    let paths = files.iter().map(|file| file.path);
    let exist: Vec<&str> = paths.filter(|path| exists(&dir.join(path))).collect();
    if !exist.is_empty() {
        return Err(refusal(dir, &exist));
    }
    let mut made = Made::default();
    let wrote = files.iter().try_for_each(|file| {
        let path = dir.join(file.path);
        made.write(&path, &file.text).map_err(|error| match error.kind() {
            // It has come between.
            io::ErrorKind::AlreadyExists => refusal(dir, &[file.path]),
            _ => failed(&path, error),
        })
    });
    if wrote.is_err() {
        made.remove();
    }
    wrote
}

/// Whether there is something of this name, be it a link that leads nowhere.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn refusal(dir: &Path, exist: &[&str]) -> Error {
    let (verb, them) = if exist.len() == 1 { ("exists", "it") } else { ("exist", "them") };
    Error::Usage(format!(
        "{} {verb} in {}: nothing is written; name another directory, or move {them} away",
        exist.join(", "),
        dir.display()
    ))
}

/// What was made, in its order.
#[derive(Default)]
struct Made {
    dirs: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Made {
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            self.make(dir)?;
        }
        let mut file = File::create_new(path)?;
        self.files.push(path.to_owned());
        file.write_all(text.as_bytes())
    }

    /// Makes a directory, and those above it.
    fn make(&mut self, dir: &Path) -> io::Result<()> {
        if dir.as_os_str().is_empty() || dir.is_dir() {
            return Ok(());
        }
        if exists(dir) {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is no directory", dir.display()),
            ));
        }
        if let Some(above) = dir.parent() {
            self.make(above)?;
        }
        if dir.is_dir() {
            return Ok(()); // by another name, or somebody else has made it
        }
        fs::create_dir(dir)?;
        self.dirs.push(dir.to_owned());
        Ok(())
    }

    /// Removes it again. What cannot be removed stays: the error that is told is the one before.
    fn remove(&self) {
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        self.dirs.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-14: a write that fails leaves nothing behind, and touches nothing that was there.
    #[test]
    fn a_failure_leaves_nothing_behind() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        fs::write(place.path().join("src"), "in the way")?;
        let file = |path| TemplateFile { path, text: "text".into() };
        let wrote = all(place.path(), &[file("a/b/one"), file("two"), file("src/three")]);
        let said = wrote.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("three") && said.contains("src is no directory"), "{said}");
        let left: io::Result<Vec<_>> =
            fs::read_dir(place.path())?.map(|entry| entry.map(|entry| entry.file_name())).collect();
        assert_eq!(left?, ["src"]);
        assert_eq!(fs::read_to_string(place.path().join("src"))?, "in the way");
        Ok(())
    }
}
