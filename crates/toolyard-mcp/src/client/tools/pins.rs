//! Remembers how tools were defined when they were first seen.

use crate::client::config::Pinning;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// The pinned digests of a server's tools.
#[derive(Debug)]
pub(crate) enum Pins {
    /// Nothing is pinned.
    Off,
    /// The digests that this process saw first, by tool.
    Process(Mutex<BTreeMap<String, String>>),
    /// The digests in a file, whose lines are removed to approve changes. Read each time, because others change it.
    File(PathBuf),
}

impl Pins {
    /// Opens the pins of a server's tools.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a file of pins.
    pub(crate) fn open(pinning: &Pinning) -> Result<Self, String> {
        match pinning {
            Pinning::Off => Ok(Self::Off),
            Pinning::Process => Ok(Self::Process(Mutex::default())),
            Pinning::File(file) => read(file).map(|_| Self::File(file.clone())),
        }
    }

    /// Checks that a tool is unchanged or new.
    ///
    /// # Errors
    /// A message if it has changed, or cannot be recorded.
    pub(crate) fn check(&self, server: &str, tool: &str, digest: &str) -> Result<(), String> {
        let key = format!("{server} {tool}");
        let is_unchanged = match self {
            Self::Off => true,
            Self::Process(digests) => {
                let mut digests = digests.lock();
                digests.entry(key.clone()).or_insert_with(|| digest.to_owned()) == digest
            }
            Self::File(file) => note(file, &key, digest)?,
        };
        match self {
            _ if is_unchanged => Ok(()),
            Self::File(file) => Err(format!(
                "its definition has changed: review it; to approve it, remove '{key}' from {} and restart the server",
                file.display()
            )),
            _ => Err("its definition has changed since the start: restart to approve it".to_owned()),
        }
    }
}

/// Whether a tool matches the file. A tool that the file lacks is added.
fn note(file: &Path, key: &str, digest: &str) -> Result<bool, String> {
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    // Other programs may use the file, too. Closing the lock file releases the lock.
    let lock = fs::File::options().create(true).append(true).open(sibling(file, "lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut pins = read(file)?;
    if let Some(known) = pins.get(key) {
        return Ok(known == digest);
    }
    pins.insert(key.to_owned(), digest.to_owned());
    let text: String = pins.iter().map(|(key, digest)| format!("{digest} {key}\n")).collect();
    let new = sibling(file, "new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(failed)?;
    Ok(true)
}

/// A file beside this one.
fn sibling(file: &Path, what: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

fn read(file: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        text => text.map_err(|error| format!("{}: {error}", file.display()))?,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let pin = |line: &str| {
        let (digest, key) = line.split_once(' ')?;
        (digest.len() == 64).then(|| (key.trim().to_owned(), digest.to_owned()))
    };
    let pins = lines.map(|line| {
        pin(line)
            .ok_or_else(|| format!("{}: '{line}' is not a pin (expected DIGEST SERVER TOOL)", file.display()))
    });
    pins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_tool_is_refused_until_its_line_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.lock");
        let pinning = Pinning::File(file.clone());
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        Pins::open(&pinning).unwrap().check("git", "add", &a).unwrap();
        Pins::open(&pinning).unwrap().check("time", "now", &a).unwrap();
        let later = Pins::open(&pinning).unwrap();
        assert_eq!(later.check("git", "add", &a), Ok(()));
        assert!(later.check("git", "add", &b).unwrap_err().contains("remove 'git add' from"));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{a} git add\n{a} time now\n"));
        fs::write(&file, format!("{a} time now\n")).unwrap();
        // Approved while the program runs; adding another tool does not bring the old line back.
        assert_eq!(later.check("git", "push", &a), Ok(()));
        assert_eq!(later.check("git", "add", &b), Ok(()));
        assert!(later.check("git", "add", &a).is_err());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{b} git add\n{a} git push\n{a} time now\n"));
    }

    #[test]
    fn without_a_file_the_first_sight_of_this_process_counts() {
        let pins = Pins::open(&Pinning::Process).unwrap();
        assert_eq!(pins.check("git", "add", "a"), Ok(()));
        assert!(pins.check("git", "add", "b").is_err());
        assert_eq!(Pins::open(&Pinning::Off).unwrap().check("git", "add", "b"), Ok(()));
    }
}
