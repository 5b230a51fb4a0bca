//! How tools were defined when they were seen first.

use super::config::Pinning;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The digests of a server's tools.
#[derive(Debug)]
pub(super) enum Pins {
    /// Nobody looks.
    Off,
    /// By tool; with a file, what is new is written there.
    On { digests: Mutex<BTreeMap<String, String>>, file: Option<PathBuf> },
}

impl Pins {
    /// What is known of a server's tools.
    ///
    /// # Errors
    /// A file that cannot be read, or is no file of pins.
    pub(super) fn open(pinning: &Pinning) -> Result<Self, String> {
        let (digests, file) = match pinning {
            Pinning::Off => return Ok(Self::Off),
            Pinning::Process => (BTreeMap::new(), None),
            Pinning::File(file) => (read(file)?, Some(file.clone())),
        };
        Ok(Self::On { digests: Mutex::new(digests), file })
    }

    /// Whether a tool is as it was, or new.
    ///
    /// # Errors
    /// What to say of one that has changed, or cannot be noted.
    pub(super) fn check(&self, server: &str, tool: &str, digest: &str) -> Result<(), String> {
        let Self::On { digests, file } = self else { return Ok(()) };
        let mut digests = digests.lock().unwrap_or_else(PoisonError::into_inner);
        let key = format!("{server} {tool}");
        match (digests.get(&key), file) {
            (Some(known), _) if known == digest => return Ok(()),
            (Some(_), Some(file)) => {
                let file = file.display();
                return Err(format!(
                    "its definition has changed: look at it, then take '{key}' out of {file} to approve it"
                ));
            }
            (Some(_), None) => {
                return Err("its definition has changed since the start: start anew to approve it".to_owned());
            }
            (None, _) => {}
        }
        digests.insert(key, digest.to_owned());
        match file {
            Some(file) => write(file, &digests).map_err(|error| format!("{}: {error}", file.display())),
            None => Ok(()),
        }
    }
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
        pin(line).ok_or_else(|| format!("{}: '{line}' is no pin: DIGEST SERVER TOOL", file.display()))
    });
    pins.collect()
}

/// Puts the file in place whole. Another server's pins may have been added meanwhile, and stay.
fn write(file: &Path, digests: &BTreeMap<String, String>) -> io::Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = read(file).map_err(io::Error::other)?;
    all.extend(digests.iter().map(|(key, digest)| (key.clone(), digest.clone())));
    let text: String = all.iter().map(|(key, digest)| format!("{digest} {key}\n")).collect();
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_tool_is_refused_until_its_line_is_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.lock");
        let pinning = Pinning::File(file.clone());
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        Pins::open(&pinning).unwrap().check("git", "add", &a).unwrap();
        Pins::open(&pinning).unwrap().check("time", "now", &a).unwrap();
        let later = Pins::open(&pinning).unwrap();
        assert_eq!(later.check("git", "add", &a), Ok(()));
        assert!(later.check("git", "add", &b).unwrap_err().contains("take 'git add' out of"));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{a} git add\n{a} time now\n"));
        fs::write(&file, format!("{a} time now\n")).unwrap();
        assert_eq!(Pins::open(&pinning).unwrap().check("git", "add", &b), Ok(()));
    }

    #[test]
    fn without_a_file_the_first_sight_of_this_process_counts() {
        let pins = Pins::open(&Pinning::Process).unwrap();
        assert_eq!(pins.check("git", "add", "a"), Ok(()));
        assert!(pins.check("git", "add", "b").is_err());
        assert_eq!(Pins::open(&Pinning::Off).unwrap().check("git", "add", "b"), Ok(()));
    }
}
